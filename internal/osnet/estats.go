package osnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/fullbore-net/fullbore/result"
)

// CollectEStats makes the system keep its extended statistics of the connection (RFC 4898;
// Windows SetPerTcpConnectionEStats, which is for administrators). On systems other than
// Windows the error wraps errors.ErrUnsupported.
func (c *Conn) CollectEStats() error {
	if !c.isTCP() {
		return fmt.Errorf("osnet: extended statistics of %T: %w", c.nc, errors.ErrUnsupported)
	}
	if err := collectEStats(c.local, c.remote); err != nil {
		return fmt.Errorf("osnet: extended statistics: %w", err)
	}
	return nil
}

// EStats reads them, as far as the system keeps them: structures by the names of the Windows
// SDK, values as NTTTCP for Windows writes them.
func (c *Conn) EStats() ([]result.EStatsStructure, error) {
	if !c.isTCP() {
		return nil, fmt.Errorf("osnet: extended statistics of %T: %w", c.nc, errors.ErrUnsupported)
	}
	s, err := readEStats(c.local, c.remote)
	if err != nil {
		return nil, fmt.Errorf("osnet: extended statistics: %w", err)
	}
	return s, nil
}

// estatsStruct is one of the structures of tcpestats.h and how it is asked for.
type estatsStruct struct {
	name   string
	kind   uint32 // TCP_ESTATS_TYPE
	static bool   // the read-only static one (ROS), else the dynamic one (ROD)
	enable int    // bytes of the read-write structure that turns collecting on; 0 = always on
	fields []estatsField
}

// estatsField is a field: 8, 4 or 1 bytes, or estatsSize, aligned to its size.
type estatsField struct {
	name  string
	width int
	form  string // "" = decimal, "bool", "hex"
}

const estatsSize = 0 // SIZE_T, of 8 bytes on the systems that this is built for

func ulongs(names ...string) (out []estatsField) {
	for _, n := range names {
		out = append(out, estatsField{name: n, width: 4})
	}
	return out
}

func ulong64s(names ...string) (out []estatsField) {
	for _, n := range names {
		out = append(out, estatsField{name: n, width: 8})
	}
	return out
}

func joined(parts ...[]estatsField) (out []estatsField) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// limited is the three fields of a reason for which a sender waited.
func limited(by string) []estatsField {
	return []estatsField{{"SndLimTrans" + by, 4, ""}, {"SndLimTime" + by, 4, ""}, {"SndLimBytes" + by, estatsSize, ""}}
}

// estatsStructs are in the order of NTTTCP's output; names and types are of tcpestats.h.
var estatsStructs = []estatsStruct{
	{"TCP_ESTATS_SYN_OPTS_ROS_v0", 0, true, 0, joined([]estatsField{{"ActiveOpen", 1, "bool"}}, ulongs("MssRcvd", "MssSent"))},
	{"TCP_ESTATS_DATA_ROD_v0", 1, false, 1, joined(
		ulong64s("DataBytesOut", "DataSegsOut", "DataBytesIn", "DataSegsIn", "SegsOut", "SegsIn"),
		ulongs("SoftErrors", "SoftErrorReason", "SndUna", "SndNxt", "SndMax"), ulong64s("ThruBytesAcked"),
		ulongs("RcvNxt"), ulong64s("ThruBytesReceived"))},
	{"TCP_ESTATS_SND_CONG_ROD_v0", 2, false, 1, joined(limited("Rwin"), limited("Cwnd"), limited("Snd"),
		ulongs("SlowStart", "CongAvoid", "OtherReductions", "CurCwnd", "MaxSsCwnd", "MaxCaCwnd", "CurSsthresh", "MaxSsthresh", "MinSsthresh"))},
	{"TCP_ESTATS_SND_CONG_ROS_v0", 2, true, 1, ulongs("LimCwnd")},
	{"TCP_ESTATS_PATH_ROD_v0", 3, false, 1, ulongs(
		"FastRetran", "Timeouts", "SubsequentTimeouts", "CurTimeoutCount", "AbruptTimeouts", "PktsRetrans", "BytesRetrans",
		"DupAcksIn", "SacksRcvd", "SackBlocksRcvd", "CongSignals", "PreCongSumCwnd", "PreCongSumRtt", "PostCongSumRtt",
		"PostCongCountRtt", "EcnSignals", "EceRcvd", "SendStall", "QuenchRcvd", "RetranThresh", "SndDupAckEpisodes",
		"SumBytesReordered", "NonRecovDa", "NonRecovDaEpisodes", "AckAfterFr", "DsackDups", "SampleRtt", "SmoothedRtt",
		"RttVar", "MaxRtt", "MinRtt", "SumRtt", "CountRtt", "CurRto", "MaxRto", "MinRto", "CurMss", "MaxMss", "MinMss",
		"SpuriousRtoDetections")},
	{"TCP_ESTATS_SEND_BUFF_ROD_v0", 4, false, 1, []estatsField{
		{"CurRetxQueue", estatsSize, ""}, {"MaxRetxQueue", estatsSize, ""}, {"CurAppWQueue", estatsSize, ""}, {"MaxAppWQueue", estatsSize, ""},
	}},
	{"TCP_ESTATS_REC_ROD_v0", 5, false, 1, joined(ulongs("CurRwinSent", "MaxRwinSent", "MinRwinSent", "LimRwin", "DupAckEpisodes",
		"DupAcksOut", "CeRcvd", "EcnSent", "EcnNoncesRcvd", "CurReasmQueue", "MaxReasmQueue"),
		[]estatsField{{"CurAppRQueue", estatsSize, ""}, {"MaxAppRQueue", estatsSize, ""}, {"WinScaleSent", 1, "hex"}})},
	{"TCP_ESTATS_OBS_REC_ROD_v0", 6, false, 1, joined(ulongs("CurRwinRcvd", "MaxRwinRcvd", "MinRwinRcvd"), []estatsField{{"WinScaleRcvd", 1, ""}})},
	{"TCP_ESTATS_BANDWIDTH_ROD_v0", 7, false, 8, joined(
		ulong64s("OutboundBandwidth", "InboundBandwidth", "OutboundInstability", "InboundInstability"),
		[]estatsField{{"OutboundBandwidthPeaked", 1, "bool"}, {"InboundBandwidthPeaked", 1, "bool"}})},
	{"TCP_ESTATS_FINE_RTT_ROD_v0", 8, false, 1, ulongs("RttVar", "MaxRtt", "MinRtt", "SumRtt")},
}

// size is the structure's size in C, bytes.
func (e estatsStruct) size() int {
	at, widest := 0, 1
	for _, f := range e.fields {
		w := f.bytes()
		at, widest = (at+w-1)&^(w-1)+w, max(widest, w)
	}
	return (at + widest - 1) &^ (widest - 1)
}

func (f estatsField) bytes() int {
	if f.width == estatsSize {
		return 8
	}
	return f.width
}

// decode reads what the system wrote, which is size bytes.
func (e estatsStruct) decode(b []byte) result.EStatsStructure {
	out := result.EStatsStructure{Name: e.name}
	at := 0
	for _, f := range e.fields {
		w := f.bytes()
		at = (at + w - 1) &^ (w - 1)
		var v uint64
		switch w {
		case 1:
			v = uint64(b[at])
		case 4:
			v = uint64(binary.LittleEndian.Uint32(b[at:]))
		default:
			v = binary.LittleEndian.Uint64(b[at:])
		}
		at += w
		text := strconv.FormatUint(v, 10)
		switch f.form {
		case "bool":
			text = "False"
			if v != 0 {
				text = "True"
			}
		case "hex":
			text = fmt.Sprintf("0x%02x", v)
		}
		out.Properties = append(out.Properties, result.EStatsProperty{Name: f.name, Value: text})
	}
	return out
}
