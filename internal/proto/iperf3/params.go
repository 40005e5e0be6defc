package iperf3

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// Params is the client's description of the test (spec §6): all that a server learns.
// A zero field was absent or zero; what a field's absence means is said in Plan.
type Params struct {
	Transport      plan.Transport
	Omit           int64 // s
	ServerAffinity *int64
	Time           int64 // s; 0 = no limit
	Num            int64 // bytes
	BlockCount     int64
	MSS            int64
	NoDelay        bool
	Parallel       int64 // per direction
	Reverse        bool
	Bidirectional  bool
	MPTCP          bool
	Window         int64
	Len            int64
	Bandwidth      int64 // bit/s per stream
	FQRate         int64 // bit/s per stream
	PacingTimer    int64 // µs
	Burst          int64
	GSO            *GSO // UDP only
	TOS            int64
	FlowLabel      int64
	Title          string
	ExtraData      string
	Congestion     string
	ServerOutput   bool
	Counters64     bool
	Repeating      bool
	ZeroCopy       bool
	DontFragment   bool
	AuthToken      string
	SkipRxCopy     bool
	ClientVersion  string
	Hello          *ext.ClientHello // key "fullbore": the client speaks the extension

	// Notes tell what was wrong with single keys; such a key counts as absent. Only
	// decoding fills it.
	Notes []Note

	present map[string]bool
}

// GSO are the five keys of UDP segmentation that 3.21 always sends with UDP.
type GSO struct{ GSO, SegmentSize, SendBuffer, GRO, ReceiveBuffer int64 }

// Note is a key of the wrong kind.
type Note struct {
	Key  string // "" = the document itself
	Want string
	Got  string
}

func (n Note) String() string {
	if n.Key == "" {
		return fmt.Sprintf("the parameters are %s instead of %s", n.Got, n.Want)
	}
	return fmt.Sprintf("parameter %q is %s instead of %s", n.Key, n.Got, n.Want)
}

// Encode writes p in the key order of release 3.21, which is also the order that every
// earlier release accepts. The extension's key comes last.
func (p Params) Encode() []byte {
	w := newWriter()
	w.trueSet(string(p.Transport), true)
	w.int("omit", p.Omit)
	if p.ServerAffinity != nil {
		w.int("server_affinity", *p.ServerAffinity)
	}
	// Always sent, even as 0: servers up to 3.11 keep the previous test's (spec §16.12).
	w.int("time", p.Time)
	w.int("num", p.Num)
	w.int("blockcount", p.BlockCount)
	w.intSet("MSS", p.MSS)
	w.trueSet("nodelay", p.NoDelay)
	w.int("parallel", p.Parallel)
	w.trueSet("reverse", p.Reverse)
	w.trueSet("bidirectional", p.Bidirectional)
	w.trueSet("mptcp", p.MPTCP)
	w.intSet("window", p.Window)
	w.intSet("len", p.Len)
	w.intSet("bandwidth", p.Bandwidth)
	w.intSet("fqrate", p.FQRate)
	w.intSet("pacing_timer", p.PacingTimer)
	w.intSet("burst", p.Burst)
	if g := p.GSO; g != nil {
		w.int("gso", g.GSO)
		w.int("gso_dg_size", g.SegmentSize)
		w.int("gso_bf_size", g.SendBuffer)
		w.int("gro", g.GRO)
		w.int("gro_bf_size", g.ReceiveBuffer)
	}
	w.intSet("TOS", p.TOS)
	w.intSet("flowlabel", p.FlowLabel)
	w.strSet("title", p.Title)
	w.strSet("extra_data", p.ExtraData)
	w.strSet("congestion", p.Congestion)
	w.flagSet("get_server_output", p.ServerOutput)
	w.flagSet("udp_counters_64bit", p.Counters64)
	w.flagSet("repeating_payload", p.Repeating)
	w.flagSet("zerocopy", p.ZeroCopy)
	w.flagSet("dont_fragment", p.DontFragment)
	w.strSet("authtoken", p.AuthToken)
	w.flagSet("skip_rx_copy", p.SkipRxCopy)
	w.str("client_version", p.ClientVersion)
	if p.Hello != nil {
		doc, _ := json.Marshal(p.Hello) // a struct of plain values always encodes
		w.raw("fullbore", doc)
	}
	return w.done()
}

// paramReader takes keys out of a document and notes those of the wrong kind.
type paramReader struct {
	obj object
	p   *Params
}

func (r paramReader) wrong(key, want string) {
	r.p.Notes = append(r.p.Notes, Note{Key: key, Want: want, Got: r.obj.kind(key).String()})
}

// take reports whether key is there with the kind wanted. null counts as absent.
func (r paramReader) take(key string, want kind) bool {
	switch k := r.obj.kind(key); k {
	case want:
		r.p.present[key] = true
		return true
	case kindAbsent, kindNull:
	default:
		r.wrong(key, want.String())
	}
	return false
}

// boolean reads a flag: presence counts, also of a false (spec §6).
func (r paramReader) boolean(key string) bool { return r.take(key, kindBool) }

func (r paramReader) int(key string) int64 {
	if !r.take(key, kindNumber) {
		return 0
	}
	v, _ := r.obj.int64(key)
	return v
}

// flag reads an integer whose presence counts.
func (r paramReader) flag(key string) bool { return r.take(key, kindNumber) }

func (r paramReader) string(key string) string {
	if !r.take(key, kindString) {
		return ""
	}
	s, _ := r.obj.string(key)
	return s
}

// DecodeParams reads a parameter document of any release. Keys match in any case,
// unknown ones are ignored, absent ones leave the zero value; a key of the wrong kind
// is noted and counts as absent, as servers since 3.18 do it. An error means that doc
// is not JSON.
func DecodeParams(doc []byte) (Params, error) {
	p := Params{Transport: plan.TCP, present: map[string]bool{}}
	obj, err := decodeObject(doc)
	if errors.Is(err, errNotObject) {
		p.Notes = append(p.Notes, Note{Want: kindObject.String(), Got: "another kind of document"})
		return p, nil
	}
	if err != nil {
		return p, err
	}
	r := paramReader{obj, &p}
	// sctp over udp over tcp (spec §6).
	for _, t := range []plan.Transport{plan.TCP, plan.UDP, plan.SCTP} {
		if r.boolean(string(t)) {
			p.Transport = t
		}
	}
	p.Omit = r.int("omit")
	if r.take("server_affinity", kindNumber) {
		v, _ := obj.int64("server_affinity")
		p.ServerAffinity = &v
	}
	p.Time, p.Num, p.BlockCount = r.int("time"), r.int("num"), r.int("blockcount")
	p.MSS, p.NoDelay, p.Parallel = r.int("MSS"), r.boolean("nodelay"), r.int("parallel")
	p.Reverse, p.Bidirectional, p.MPTCP = r.boolean("reverse"), r.boolean("bidirectional"), r.boolean("mptcp")
	p.Window, p.Len = r.int("window"), r.int("len")
	p.Bandwidth, p.FQRate, p.PacingTimer = r.int("bandwidth"), r.int("fqrate"), r.int("pacing_timer")
	p.Burst = r.int("burst")
	if r.flag("gso") || r.flag("gro") {
		p.GSO = &GSO{r.int("gso"), r.int("gso_dg_size"), r.int("gso_bf_size"), r.int("gro"), r.int("gro_bf_size")}
	}
	p.TOS, p.FlowLabel = r.int("TOS"), r.int("flowlabel")
	p.Title, p.ExtraData, p.Congestion = r.string("title"), r.string("extra_data"), r.string("congestion")
	p.ServerOutput, p.Counters64 = r.flag("get_server_output"), r.flag("udp_counters_64bit")
	p.Repeating, p.DontFragment = r.flag("repeating_payload"), r.flag("dont_fragment")
	// Since trunk the value of this one counts (spec §6); no release sends a 0.
	p.ZeroCopy = r.int("zerocopy") != 0
	p.AuthToken, p.SkipRxCopy = r.string("authtoken"), r.flag("skip_rx_copy")
	p.ClientVersion = r.string("client_version")
	if r.take("fullbore", kindObject) {
		p.Hello = decodeClientHello(obj["fullbore"])
	}
	return p, nil
}

// refusal is a reason not to run a test: what goes on the wire, and what the log says.
type refusal struct {
	WireError
	Text string
}

// check applies the limits of iperf3's development version after 3.21, with its codes
// (spec §6 "Range checks"); maxStreams is per direction.
func (p Params) check(maxStreams int64) *refusal {
	var out *refusal
	bad := func(cond bool, code int, format string, args ...any) {
		if cond && out == nil {
			out = &refusal{WireError{Code: int32(code)}, fmt.Sprintf(format, args...)}
		}
	}
	switch p.Transport {
	case plan.UDP:
		bad(p.present["len"] && (p.Len < plan.MinUDPBlock || p.Len > plan.MaxUDPBlock), codeUDPBlockSize,
			"len %d is outside 16…65507", p.Len)
	default:
		bad(p.present["len"] && (p.Len <= 0 || p.Len > plan.MaxBlockSize), codeBlockSize, "len %d is outside 1…1048576", p.Len)
	}
	streams := p.streams()
	bad(p.present["parallel"] && (streams < 1 || streams > maxStreams), codeNumStreams,
		"%d streams were asked for, allowed are 1…%d", streams, maxStreams)
	bad(p.Time < 0 || p.Time > int64(plan.MaxDuration/time.Second), codeDuration, "time %d is outside 0…86400", p.Time)
	bad(p.Omit < 0 || p.Omit > int64(plan.MaxOmit/time.Second), codeOmit, "omit %d is outside 0…600", p.Omit)
	bad(p.MSS < 0 || p.MSS > plan.MaxMSS, codeMSS, "MSS %d is outside 0…32767", p.MSS)
	bad(p.TOS < 0 || p.TOS > 255, codeTOS, "TOS %d is outside 0…255", p.TOS)
	bad(p.present["burst"] && (p.Burst < 1 || p.Burst > plan.MaxBurst), codeBurst, "burst %d is outside 1…1000", p.Burst)
	bad(p.FlowLabel < 0 || p.FlowLabel > plan.MaxFlowLabel, codeSetFlow, "flowlabel %d is outside 1…0xfffff", p.FlowLabel)
	bad(p.Window < 0 || p.Window > plan.MaxWindow, codeWindow, "window %d is outside 0…512 MiB", p.Window)
	if a := p.ServerAffinity; a != nil {
		bad(*a < 0 || *a > plan.MaxAffinity, codeAffinity, "server_affinity %d is outside 0…1024", *a)
	}
	bad(min(p.Num, p.BlockCount, p.Bandwidth, p.FQRate, p.PacingTimer) < 0, codeRecvParams,
		"num, blockcount, bandwidth, fqrate or pacing_timer is negative")
	if g := p.GSO; g != nil {
		bad(min(g.GSO, g.SegmentSize, g.SendBuffer, g.GRO, g.ReceiveBuffer) < 0, codeRecvParams, "a gso or gro size is negative")
	}
	return out
}

// streams is the number per direction; the extension may ask for more than the
// protocol's own field may hold.
func (p Params) streams() int64 {
	if p.Hello != nil && p.Hello.Streams > 0 {
		return int64(p.Hello.Streams)
	}
	return p.Parallel
}

// endless reports that no time rule ends the test: it says 0, or it says nothing and
// counts bytes or blocks (spec §16.11).
func (p Params) endless() bool {
	return p.Time == 0 && (p.present["time"] || p.Num > 0 || p.BlockCount > 0)
}

// Plan is the test as the server sees it. p must have passed check.
func (p Params) Plan() plan.Plan {
	out := plan.Plan{
		Protocol: "iperf3", Transport: p.Transport, MPTCP: p.MPTCP, Direction: plan.Up,
		Streams: int(max(p.streams(), 1)), Duration: seconds(p.Time), Bytes: p.Num, Blocks: p.BlockCount, Omit: seconds(p.Omit),
		BlockSize: int(p.Len), Bitrate: p.Bandwidth, Burst: int(p.Burst), FQRate: p.FQRate, PacingTimer: p.PacingTimer,
		Window: p.Window, MSS: int(p.MSS), NoDelay: p.NoDelay, Congestion: p.Congestion, TOS: int(p.TOS), FlowLabel: int(p.FlowLabel),
		Repeating: p.Repeating, Counters64: p.Counters64, DontFragment: p.DontFragment,
		Title: p.Title, ExtraData: p.ExtraData, GetServerOutput: p.ServerOutput,
		GSRO: p.GSO != nil && (p.GSO.GSO != 0 || p.GSO.GRO != 0),
	}
	switch {
	case p.Bidirectional: // with both flags set, real servers run bidirectional
		out.Direction = plan.Both
	case p.Reverse:
		out.Direction = plan.Down
	}
	if p.ZeroCopy {
		out.Send = plan.SendZeroCopy
	}
	if p.SkipRxCopy {
		out.Receive = plan.Discard
	}
	if p.ServerAffinity != nil {
		out.Affinity = []int{int(*p.ServerAffinity)}
	}
	switch {
	case p.endless():
		out.Endless = true
	case p.Time == 0:
		out.Duration = plan.DefaultDuration
	}
	if out.BlockSize == 0 {
		out.BlockSize = plan.DefaultTCPBlock // also for udp without len (spec §6)
	}
	if h := p.Hello; h != nil {
		if h.Omit > 0 {
			out.Omit = time.Duration(h.Omit * float64(time.Second))
		}
		if h.Duration > 0 && !out.Endless {
			out.Duration = time.Duration(h.Duration * float64(time.Second))
		}
	}
	return out
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// ceilSeconds is d in whole seconds, rounded up, as iperf3's parameters need it.
func ceilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// ParamsOf describes a filled plan to a server. version is the release to name.
// Fractions of a second are rounded up; an extension carries them exactly.
func ParamsOf(p plan.Plan, version string) Params {
	out := Params{
		Transport: p.Transport, Omit: ceilSeconds(p.Omit), Time: ceilSeconds(p.Duration), Num: p.Bytes, BlockCount: p.Blocks,
		MSS: int64(p.MSS), NoDelay: p.NoDelay, Parallel: int64(min(p.Streams, plan.MaxStreams)),
		Reverse: p.Direction == plan.Down, Bidirectional: p.Direction == plan.Both, MPTCP: p.MPTCP, Window: p.Window,
		Len: int64(p.BlockSize), Bandwidth: p.Bitrate, FQRate: p.FQRate, PacingTimer: p.PacingTimer, Burst: int64(p.Burst),
		TOS: int64(p.TOS), FlowLabel: int64(p.FlowLabel), Title: p.Title, ExtraData: p.ExtraData, Congestion: p.Congestion,
		ServerOutput: p.GetServerOutput, Counters64: p.Counters64, Repeating: p.Repeating,
		ZeroCopy: p.Send == plan.SendZeroCopy || p.RemoteZeroCopy, DontFragment: p.DontFragment,
		SkipRxCopy: p.RemoteDiscard, ClientVersion: version,
	}
	if p.RemoteAffinity != nil {
		a := int64(*p.RemoteAffinity)
		out.ServerAffinity = &a
	}
	if p.Transport == plan.UDP {
		out.GSO = gsoOf(p)
	}
	return out
}

// gsoOf gives the sizes that 3.21 derives from the datagram length (spec §6).
func gsoOf(p plan.Plan) *GSO {
	g := &GSO{SendBuffer: plan.MaxUDPBlock, ReceiveBuffer: plan.MaxUDPBlock}
	if p.GSRO && p.BlockSize > 0 {
		g.GSO, g.GRO, g.SegmentSize = 1, 1, int64(p.BlockSize)
		g.SendBuffer = plan.MaxUDPBlock / g.SegmentSize * g.SegmentSize
	}
	return g
}
