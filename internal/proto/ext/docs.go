package ext

import (
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Version is the version of the documents. Fields are added to a version, never removed;
// readers skip what they do not know.
const Version = 1

// Features that an end may offer; both must have named one for it to be used.
const (
	FeatureEvents = "events" // frames 0x47: the server's events, live
	FeatureClient = "client" // frames 0x49: the client's events and facts, steer, stop
	FeatureQueue  = "queue"  // frames 0x48: waiting instead of a busy answer
	FeatureIndex  = "index"  // TCP streams send cookie + index and may be opened many at a time
	FeatureUDP    = "udp"    // UDP streams carry an index, their datagrams 64-bit counters, send time and nonce
	FeatureToken  = "token"  // streams from another address are proved, frame 0x4a
	FeatureExact  = "exact"  // a sending server stops at num bytes or blockcount blocks itself
	FeatureProbe  = "probe"  // the server answers probe datagrams
	FeatureClass  = "class"  // probes name the class of their answers, and a test may have several streams of them
	FeatureSteer  = "steer"  // answers to probes tell what of the test's datagrams has arrived, and steered servers mind silence
	FeaturePing   = "ping"   // the server answers round trips over TCP
	FeatureMTU    = "mtu"    // probes may ask for answers longer than themselves, which nobody may fragment
	FeatureRamp   = "ramp"   // the server's streams begin when the client says so, and round trips over TCP are answered beside a load
	FeatureSwap   = "swap"   // the server plays the client of the test, against a server that the client opens
)

// ClientHello is the client's offer: in iperf3's parameters the value of "fullbore", in NTTTCP
// the document of its frame 0x46.
type ClientHello struct {
	V        int      `json:"v"`
	Version  string   `json:"version"`
	Features []string `json:"features"`
	// Streams is the number per direction. iperf3: only when it is above what "parallel" may hold.
	Streams int `json:"streams,omitempty"`
	// Duration and Omit are s. iperf3: only when they are not whole seconds. NTTTCP: the client's
	// measured time (0 = until stopped) and warm-up.
	Duration float64 `json:"time_s,omitempty"`
	Omit     float64 `json:"omit_s,omitempty"`
	// Offload and Pacing say how the server is to handle UDP at its end: plan.Offload and
	// plan.Pacing.
	Offload plan.Offload `json:"offload,omitempty"`
	Pacing  plan.Pacing  `json:"pacing,omitempty"`
	// Steady is plan.Steady: what the server sends late it gives up.
	Steady bool `json:"steady,omitempty"`
	// CatchUp is plan.CatchUp: by which share of its rate the server goes faster to make that up after all.
	CatchUp float64 `json:"catch_up,omitempty"`
	// Interval is the time between the server's live reports, s, where less than a second is
	// wanted.
	Interval float64 `json:"interval_s,omitempty"`
	// Queue: wait when the server is busy.
	Queue bool `json:"queue,omitempty"`
	// ProbeOnly: no streams, where the server has the feature that is wanted instead.
	ProbeOnly bool `json:"probe_only,omitempty"`
	// Open is how many streams of each direction begin at once; 0 = all. Frames 0x49 let the others begin.
	Open int `json:"open,omitempty"`
	// Cooldown is NTTTCP's, s of traffic after Duration.
	Cooldown float64 `json:"cooldown_s,omitempty"`
	// UDP: NTTTCP's client sends datagrams.
	UDP bool `json:"udp,omitempty"`
	// Swap: the server is to play the client; nil = not.
	Swap *Swap `json:"swap,omitempty"`
}

// Has reports whether the client offers a feature; h may be nil.
func (h *ClientHello) Has(f string) bool { return h != nil && slices.Contains(h.Features, f) }

// DecodeClientHello reads an offer; nil when it makes no sense, as one of longer times than
// given, which leaves the protocol without the extension.
func DecodeClientHello(raw []byte, most, mostOmit time.Duration) *ClientHello {
	var h ClientHello
	if json.Unmarshal(raw, &h) != nil || h.V < 1 || h.Streams < 0 || h.Open < 0 ||
		h.Duration < 0 || h.Duration > most.Seconds() || h.Omit < 0 || h.Omit > mostOmit.Seconds() ||
		h.Cooldown < 0 || h.Cooldown > most.Seconds() {
		return nil
	}
	return &h
}

// ServerHello is the document of the server's frame 0x46.
type ServerHello struct {
	V        int          `json:"v"`
	Version  string       `json:"version"`
	Features []string     `json:"features"`
	Test     string       `json:"test"`           // the server's name for this test: 8 bytes in hexadecimal; probes carry it
	Nonce    string       `json:"nonce"`          // 8 bytes in hexadecimal; marks the test's datagrams
	Clock    Clock        `json:"clock"`          // the server's clocks when it wrote this
	Host     *result.Host `json:"host,omitempty"` // what the server tells about its machine
	Limits   *Limits      `json:"limits,omitempty"`
	// Overlap is the number of other tests running there.
	Overlap int `json:"overlap,omitempty"`
	// SameHost is probe.HostMark of the server.
	SameHost string `json:"same_host,omitempty"`
	// SeenAs is the client's address as the server sees it; Local the server's own, for those
	// who may know its facts. Both of the control connection, numeric, without a port.
	SeenAs string `json:"seen_as,omitempty"`
	Local  string `json:"local,omitempty"`
	// Times are NTTTCP's: what the server measures by its own settings.
	Times *Times `json:"times,omitempty"`
	// Swap is what a server says that a client opened for one test with exchanged roles: the Test of that
	// client's own conversation.
	Swap string `json:"swap,omitempty"`
}

// Has reports whether the server has a feature; h may be nil.
func (h *ServerHello) Has(f string) bool { return h != nil && slices.Contains(h.Features, f) }

// DecodeServerHello reads an answer and makes it safe to show; nil when it is none.
func DecodeServerHello(raw []byte) *ServerHello {
	var h ServerHello
	if json.Unmarshal(raw, &h) != nil || h.V < 1 {
		return nil
	}
	h.Version = Printable(h.Version)
	h.SeenAs, h.Local = numeric(h.SeenAs), numeric(h.Local)
	if h.Host != nil {
		h.Host = PrintableHost(h.Host)
	}
	return &h
}

// numeric is s where it is an address, IPv4-mapped ones as IPv4, else "".
func numeric(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	return a.Unmap().WithZone("").String()
}

// Address is the numeric address of one side of a connection, without port and zone.
func Address(a net.Addr) string {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	return ap.Addr().Unmap().WithZone("").String()
}

// Times are the parts of an end's test, s; Duration 0 = until stopped.
type Times struct {
	Omit     float64 `json:"omit_s,omitempty"`
	Duration float64 `json:"time_s,omitempty"`
	Cooldown float64 `json:"cooldown_s,omitempty"`
	// Follow: the server measures as the client does, whatever else it says.
	Follow bool `json:"follow,omitempty"`
}

// Clock is one reading of a host's two clocks, in ns. Mono counts from an unspecified
// start and never jumps.
type Clock struct {
	Mono int64 `json:"mono_ns"`
	Wall int64 `json:"wall_ns"`
	// RealOffset is what to add to the times in probes' answers to get this end's time of day, ns;
	// Synced says that a time service keeps that, MaxError within what, s. nil = not known.
	RealOffset *int64   `json:"real_offset_ns,omitempty"`
	Synced     *bool    `json:"synchronised,omitempty"`
	MaxError   *float64 `json:"max_error_s,omitempty"`
}

// clockStart is the zero of Clock.Mono: a constant of the process.
var clockStart = time.Now()

// ReadClock reads both clocks; wall is the time of day.
func ReadClock(wall time.Time) Clock {
	return Clock{Mono: int64(time.Since(clockStart)), Wall: wall.UnixNano()}
}

// Limits is the policy a server applies to this test; 0 = none.
type Limits struct {
	MaxRate     int64   `json:"max_rate_bps,omitempty"`
	MaxDuration float64 `json:"max_time_s,omitempty"`
	MaxStreams  int     `json:"max_streams,omitempty"`
}

// OrNil is l, or nil where it limits nothing.
func (l Limits) OrNil() *Limits {
	if l == (Limits{}) {
		return nil
	}
	return &l
}

// Facts is what a server of facts f tells a client about its machine: everything to whom its
// operator trusts, else what a stranger may know (design §5 "Hello"). f may be nil.
func Facts(f *result.Host, trusted bool) *result.Host {
	if f == nil || trusted {
		return f
	}
	return &result.Host{Tool: f.Tool, OS: f.OS, Release: f.Release, Cores: f.Cores}
}

// QueueFrame is the document of frame 0x48.
type QueueFrame struct {
	Position int      `json:"position"`             // 1 = next
	Estimate *float64 `json:"estimate_s,omitempty"` // time until the turn comes, when it can be told
}

// EventFrame is the document of frame 0x47.
type EventFrame struct {
	Event   *result.Event `json:"event"`
	Dropped int64         `json:"dropped,omitempty"` // events not sent so far, for lack of room
}

// ClientFrame is the document of frame 0x49; any of its parts may be there.
type ClientFrame struct {
	Event   *result.Event `json:"event,omitempty"`
	Facts   *result.Host  `json:"facts,omitempty"`
	Steer   *Steer        `json:"steer,omitempty"`
	Stop    *Stop         `json:"stop,omitempty"`
	Dropped int64         `json:"dropped,omitempty"`
	// Streams are NTTTCP's data connections in the client's order: its own port and the server's
	// of each. What one frame cannot hold the next goes on with.
	Streams [][2]int `json:"streams,omitempty"`
	// Open is how many streams of each direction send from now on (Hello.Open); 0 = as before.
	Open int `json:"open,omitempty"`
}

// ReadyFrame is the document of frame 0x4a, before TEST_START.
type ReadyFrame struct {
	// Prove are the indexes of TCP streams that came from another address than the control
	// connection: a token waits on each, to be sent back on it.
	Prove []int `json:"prove,omitempty"`
	// Ready: all streams are there.
	Ready bool `json:"ready,omitempty"`
}

// Steer is a new rate for the server's sending streams.
type Steer struct {
	BPS int64 `json:"rate_bps"` // per stream; 0 = unlimited
	// Watch: such frames come several times a second until the test ends. A server that hears none
	// for a second sends as little as it can, and one that hears none for three ends the test.
	Watch bool `json:"watch,omitempty"`
}

// Stop asks the server to end the test as if its end had come, so that an interrupted test
// still has both ends' figures.
type Stop struct {
	Why string `json:"why"`
}
