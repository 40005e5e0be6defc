package osnet

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

// The sizes are those that a C compiler gives the structures of tcpestats.h (64 bits); every
// field is written with its own place, which must come back.
func TestEStatsLayout(t *testing.T) {
	sizes := map[string]int{
		"TCP_ESTATS_SYN_OPTS_ROS_v0": 12, "TCP_ESTATS_DATA_ROD_v0": 96, "TCP_ESTATS_SND_CONG_ROD_v0": 88,
		"TCP_ESTATS_SND_CONG_ROS_v0": 4, "TCP_ESTATS_PATH_ROD_v0": 160, "TCP_ESTATS_SEND_BUFF_ROD_v0": 32,
		"TCP_ESTATS_REC_ROD_v0": 72, "TCP_ESTATS_OBS_REC_ROD_v0": 16, "TCP_ESTATS_BANDWIDTH_ROD_v0": 40,
		"TCP_ESTATS_FINE_RTT_ROD_v0": 16,
	}
	for _, e := range estatsStructs {
		if e.size() != sizes[e.name] {
			t.Errorf("%s: %d bytes, want %d", e.name, e.size(), sizes[e.name])
		}
		delete(sizes, e.name)
		if got := e.decode(make([]byte, e.size())); got.Name != e.name || len(got.Properties) != len(e.fields) {
			t.Errorf("%+v", got)
		}
	}
	if len(sizes) != 0 {
		t.Errorf("not there: %v", sizes)
	}
}

func TestEStatsDecode(t *testing.T) {
	find := func(name string) estatsStruct {
		i := slices.IndexFunc(estatsStructs, func(e estatsStruct) bool { return e.name == name })
		return estatsStructs[i]
	}
	value := func(s result.EStatsStructure, name string) string {
		for _, p := range s.Properties {
			if p.Name == name {
				return p.Value
			}
		}
		return "none"
	}
	data := make([]byte, 96)
	binary.LittleEndian.PutUint64(data[0:], 1<<40)
	binary.LittleEndian.PutUint32(data[64:], 7)  // SndMax
	binary.LittleEndian.PutUint64(data[72:], 8)  // ThruBytesAcked, aligned
	binary.LittleEndian.PutUint64(data[88:], 10) // ThruBytesReceived, after RcvNxt and a gap
	d := find("TCP_ESTATS_DATA_ROD_v0").decode(data)
	rec := make([]byte, 72)
	binary.LittleEndian.PutUint64(rec[48:], 11) // CurAppRQueue
	rec[64] = 9
	r := find("TCP_ESTATS_REC_ROD_v0").decode(rec)
	y := find("TCP_ESTATS_SYN_OPTS_ROS_v0").decode([]byte{1, 0, 0, 0, 0xb4, 5, 0, 0, 0xa0, 5, 0, 0})
	got := []string{
		value(d, "DataBytesOut"), value(d, "SndMax"), value(d, "ThruBytesAcked"), value(d, "ThruBytesReceived"),
		value(r, "CurAppRQueue"), value(r, "WinScaleSent"), value(y, "ActiveOpen"), value(y, "MssRcvd"), value(y, "MssSent"),
	}
	if want := []string{"1099511627776", "7", "8", "10", "11", "0x09", "True", "1460", "1440"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A connection has them, or it is said that the system has none or keeps them to administrators.
func TestEStatsOfAConnection(t *testing.T) {
	c, _ := pair(t, mustListen(t, "127.0.0.1:0", Options{}), "127.0.0.1", Options{}, Options{})
	err := c.CollectEStats()
	if err == nil {
		var s []result.EStatsStructure
		if s, err = c.EStats(); err == nil {
			if len(s) != len(estatsStructs) {
				t.Errorf("%d structures", len(s))
			}
			return
		}
	}
	if !errors.Is(err, errors.ErrUnsupported) && !strings.Contains(err.Error(), "TCP_ESTATS_") && !strings.Contains(err.Error(), "ConnectionEStats") {
		t.Errorf("%v", err)
	}
}
