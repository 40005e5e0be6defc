// Package plan says what a test is to do (Plan) and what a listener allows
// (Serve), as plain values that survive a JSON round trip: the same type serves a
// command line, a stored settings row and a job sent to another machine.
package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// Transport is the protocol that carries the payload.
type Transport string

// The transports. SCTP parses but no build carries it yet.
const (
	TCP  Transport = "tcp"
	UDP  Transport = "udp"
	SCTP Transport = "sctp"
)

// Direction says who sends.
type Direction string

// Up: the client sends. Down: the server sends. Both: each, on streams of their own.
const (
	Up   Direction = "up"
	Down Direction = "down"
	Both Direction = "both"
)

// Receive says what becomes of received payload.
type Receive string

// The ways to receive. Copy reads it into memory, as applications do; Discard lets
// the kernel drop it (MSG_TRUNC) where the system can, else copies with a notice.
const (
	Copy    Receive = ""
	Discard Receive = "discard"
)

// Send says how payload reaches the kernel.
type Send string

// The ways to send. Cheapest lets the engine take zero-copy where it pays; ZeroCopy
// insists on it (-Z).
const (
	SendCopy     Send = ""
	SendCheapest Send = "cheapest"
	SendZeroCopy Send = "zerocopy"
)

// Pacing says how closely a paced UDP sender keeps to its due times (M-UDP).
type Pacing string

// Default groups what falls into 50 µs. Frugal groups 500 µs: a tenth of the CPU time,
// larger bursts. Precise spins up to each due time on a CPU of its own.
const (
	PacingDefault Pacing = ""
	PacingFrugal  Pacing = "frugal"
	PacingPrecise Pacing = "precise"
)

// Offload says whether UDP uses the kernel's segmentation and coalescing (GSO, GRO; USO
// and URO on Windows) at this end.
type Offload string

// Auto uses what the socket and the path can do, where a burst holds several datagrams.
const (
	OffloadAuto Offload = ""
	OffloadOn   Offload = "on"  // a notice where it cannot be had
	OffloadOff  Offload = "off" // one datagram at a time through the stack; the socket's drop count is then exact
)

// Probe is a stream of small requests that the other end answers.
type Probe struct {
	Spacing time.Duration `json:"spacing"`           // between requests; default 20 ms
	Size    int           `json:"size,omitempty"`    // payload bytes; default 64, at least 44
	Profile string        `json:"profile,omitempty"` // name shown: "voice", "1ms"
	// Idle: nothing but probes; the test has no streams. Else they run beside the load.
	Idle bool `json:"idle,omitempty"`
	// Classes are TOS bytes of further probes beside the load, each each ClassSpacing: does a class
	// starve while another does not? At most 3.
	Classes []int `json:"classes,omitempty"`
	// TCP: request and response over a TCP connection, back to back, and connect times.
	TCP bool `json:"tcp,omitempty"`
	// MTU: single packets that find the path MTU of each direction, one after the other (M-PMTU).
	MTU bool `json:"mtu,omitempty"`
}

// Steer lets the rate of a UDP test follow what the receiver reports (M-CAP). It needs probes beside the
// load and a fullbore at the other end; to any other the test is one of SteerPlain at Bitrate.
type Steer struct {
	Type string `json:"type,omitempty"` // "b" (default) or "c", which climbs faster
	Max  int64  `json:"max,omitempty"`  // payload bit/s of all streams that it never goes above; 0 = none
}

// Ramp lets the streams of a TCP test begin one after the other, and ends the test when its rate and its
// round trips have settled (M-RPM); Duration is the most that it takes. Its intervals are the plan's. A
// server that does not know how sends on all streams at once.
type Ramp struct {
	First int `json:"first,omitempty"` // streams of each direction that begin at once; default 1
	Add   int `json:"add,omitempty"`   // further ones each interval until the rate has settled; default 1
}

// SteerPlain is how long a steered test lasts to a peer that cannot be steered with.
const SteerPlain = time.Second

// Swap lets the other end play the client of a TCP test, against a server that this end opens for that
// one test. The rest of the Plan is said from there: up is what the other end sends.
type Swap struct {
	Port int `json:"port,omitempty"` // of that server; 0 = any free one
}

// MinSwapPort is the lowest port of such a server: those below it are services', where nobody is to
// be sent by a stranger.
const MinSwapPort = 1024

// SteerEvery is the time between two reports of the receiver of a steered test.
const SteerEvery = 50 * time.Millisecond

// Plan is one test. Zero values mean the default; Filled puts the defaults in.
type Plan struct {
	Protocol  string    `json:"protocol,omitempty"`  // registry name; default "iperf3"
	Transport Transport `json:"transport,omitempty"` // default tcp
	MPTCP     bool      `json:"mptcp,omitempty"`
	Direction Direction `json:"direction,omitempty"` // default up

	Host           string        `json:"host"`           // as typed; name, address, scoped IPv6
	Port           int           `json:"port,omitempty"` // default 5201
	Own            bool          `json:"own,omitempty"`  // Host and Port are of a server that this program started for the test
	Family         int           `json:"family,omitempty"`
	BindHost       string        `json:"bind_host,omitempty"`
	BindDev        string        `json:"bind_dev,omitempty"`
	ClientPort     int           `json:"client_port,omitempty"` // first local data port; 0 = any
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"`
	ReceiveTimeout time.Duration `json:"receive_timeout,omitempty"` // no data for so long ends the test; default 120 s
	SendTimeout    time.Duration `json:"send_timeout,omitempty"`    // TCP_USER_TIMEOUT; 0 = system
	Keepalive      *Keepalive    `json:"keepalive,omitempty"`       // control connection; nil = off

	Streams  int           `json:"streams,omitempty"`  // per direction; default 1
	Duration time.Duration `json:"duration,omitempty"` // whole seconds on iperf3's wire (rounded up); 0 with no other limit = default 10 s
	Endless  bool          `json:"endless,omitempty"`  // run until interrupted (iperf3 -t 0)
	Bytes    int64         `json:"bytes,omitempty"`    // payload over all streams
	Blocks   int64         `json:"blocks,omitempty"`   // blocks over all streams
	Omit     time.Duration `json:"omit,omitempty"`
	Interval time.Duration `json:"interval,omitempty"` // default 1 s
	OneRow   bool          `json:"one_row,omitempty"`  // a single interval for the whole test (iperf3 -i 0)

	BlockSize   int   `json:"block_size,omitempty"` // default 128 KiB for TCP, path-derived for UDP
	Bitrate     int64 `json:"bitrate,omitempty"`    // per stream, payload bit/s; 0 = unlimited (UDP on iperf3's wire: see RateSet)
	RateSet     bool  `json:"rate_set,omitempty"`   // Bitrate was given, even as 0
	Burst       int   `json:"burst,omitempty"`      // 1…1000 blocks back to back
	FQRate      int64 `json:"fq_rate,omitempty"`    // SO_MAX_PACING_RATE, bit/s per stream
	PacingTimer int64 `json:"pacing_timer_us,omitempty"`
	Window      int64 `json:"window,omitempty"` // SO_SNDBUF and SO_RCVBUF
	// StrictWindow ends the test when the system grants less than Window, as iperf3 does;
	// else that is a notice.
	StrictWindow bool   `json:"strict_window,omitempty"`
	MSS          int    `json:"mss,omitempty"`
	NoDelay      bool   `json:"no_delay,omitempty"`
	Congestion   string `json:"congestion,omitempty"`
	TOS          int    `json:"tos,omitempty"`
	FlowLabel    int    `json:"flow_label,omitempty"`
	// Affinity: CPUs for this end's workers; RemoteAffinity: the one CPU asked of the
	// peer (iperf3 knows no lists). nil = none.
	Affinity       []int   `json:"affinity,omitempty"`
	RemoteAffinity *int    `json:"remote_affinity,omitempty"`
	Send           Send    `json:"send,omitempty"`
	Receive        Receive `json:"receive,omitempty"`
	// RemoteZeroCopy and RemoteDiscard ask the peer for its cheap paths.
	RemoteZeroCopy bool   `json:"remote_zero_copy,omitempty"`
	RemoteDiscard  bool   `json:"remote_discard,omitempty"`
	File           string `json:"file,omitempty"`
	Repeating      bool   `json:"repeating_payload,omitempty"`
	Counters64     bool   `json:"udp_counters_64bit,omitempty"`
	DontFragment   bool   `json:"dont_fragment,omitempty"`
	GSRO           bool   `json:"gsro,omitempty"` // ask both ends for offload with iperf3's keys
	// UDP at this end. AllowFragments lets datagrams be larger than the path's packet.
	Pacing         Pacing  `json:"pacing,omitempty"`
	Offload        Offload `json:"offload,omitempty"`
	AllowFragments bool    `json:"allow_fragments,omitempty"`
	// Steady: what an end could not send in time, because it was not scheduled, is given up and
	// counted instead of made up in a burst: no datagram is lost for that its sender was late.
	Steady bool `json:"steady,omitempty"`
	// CatchUp, with Steady: what an end could not send in time it makes up after all, by going faster than its rate by
	// this share of it, at most MaxCatchUp: where the rate is that much below what is to be tested, nothing queues for that.
	CatchUp float64 `json:"catch_up,omitempty"`
	Probe   *Probe  `json:"probe,omitempty"`
	Steer   *Steer  `json:"steer,omitempty"` // UDP: the rate follows the receiver's feedback
	Ramp    *Ramp   `json:"ramp,omitempty"`  // TCP: the streams begin one after the other
	Swap    *Swap   `json:"swap,omitempty"`  // TCP: client and server exchange their roles
	// NTTTCP is set exactly when Protocol is "ntttcp".
	NTTTCP *NTTTCP `json:"ntttcp,omitempty"`

	Title           string   `json:"title,omitempty"`
	ExtraData       string   `json:"extra_data,omitempty"`
	GetServerOutput bool     `json:"get_server_output,omitempty"`
	Auth            *Auth    `json:"auth,omitempty"`
	Extension       string   `json:"extension,omitempty"` // "" = offer it, "quiet" = offer it without events, "off" = plain iperf3
	Queue           bool     `json:"queue,omitempty"`     // wait when the server is busy (extension)
	MaxBytes        int64    `json:"max_bytes,omitempty"` // budget: the engine stops at it
	MaxRate         int64    `json:"max_rate,omitempty"`  // budget: bit/s over all streams
	Options         []string `json:"options,omitempty"`   // the user's words, for the record
}

// Keepalive is TCP keepalive of the control connection; 0 = system default.
type Keepalive struct {
	Idle     time.Duration `json:"idle,omitempty"`
	Interval time.Duration `json:"interval,omitempty"`
	Count    int           `json:"count,omitempty"`
}

// Auth is iperf3's login. Password never enters JSON.
type Auth struct {
	Username  string `json:"username"`
	Password  string `json:"-"`
	PublicKey []byte `json:"public_key,omitempty"` // PEM
	PKCS1     bool   `json:"pkcs1,omitempty"`      // old padding, for servers ≤ 3.16
}

// Limits of iperf3 3.21 (spec iperf3-cli §2); the engine itself takes more streams.
const (
	DefaultPort     = 5201
	MaxStreams      = 128
	MaxStreamsExt   = 10000 // between two fullbores
	MaxBlockSize    = 1 << 20
	MinUDPBlock     = 16
	MaxUDPBlock     = 65507
	MaxBurst        = 1000
	MaxMSS          = 32767
	MinMSS          = 88 // Linux TCP_MIN_MSS (include/net/tcp.h)
	MaxWindow       = 512 << 20
	MaxFlowLabel    = 0xfffff
	MaxAffinity     = 1024
	DefaultTCPBlock = 128 << 10
	DefaultUDPRate  = 1 << 20 // iperf3's 1 Mibit/s, drop-in only
)

// Limits of probes: a server answers at most 1000 a second (docs/wire-extension.md).
const (
	MinProbe        = 44
	MinProbeSpacing = time.Millisecond
	MaxClasses      = 3
	ClassSpacing    = 20 * time.Millisecond
)

// MaxCatchUp bounds Plan.CatchUp.
const MaxCatchUp = 0.1

// Time limits of iperf3 3.21.
const (
	MaxDuration           = 86400 * time.Second
	MaxOmit               = 600 * time.Second
	MinInterval           = 100 * time.Millisecond
	MaxInterval           = 60 * time.Second
	DefaultDuration       = 10 * time.Second
	DefaultReceiveTimeout = 120 * time.Second
)

// FieldError is a fault of one field.
type FieldError struct {
	Field string // JSON name
	Value any
	Want  string // what would be right
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Field, e.Value, e.Want) }

// Filled returns p with the defaults put in.
func (p Plan) Filled() Plan {
	if p.NTTTCP != nil {
		p = p.filledNTTTCP()
	}
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&p.Protocol, "iperf3")
	def((*string)(&p.Transport), string(TCP))
	def((*string)(&p.Direction), string(Up))
	if p.Port == 0 {
		p.Port = DefaultPort
	}
	if p.Streams == 0 {
		p.Streams = 1
	}
	if p.Duration == 0 && !p.Endless && p.Bytes == 0 && p.Blocks == 0 && p.File == "" && p.NTTTCP == nil {
		p.Duration = DefaultDuration
	}
	if p.Interval == 0 && !p.OneRow {
		p.Interval = time.Second
	}
	if p.BlockSize == 0 && p.Transport == TCP {
		p.BlockSize = DefaultTCPBlock
	}
	if p.ReceiveTimeout == 0 {
		p.ReceiveTimeout = DefaultReceiveTimeout
	}
	if p.PacingTimer == 0 {
		p.PacingTimer = 1000
	}
	if p.Probe != nil {
		pr := *p.Probe
		if pr.Spacing == 0 {
			pr.Spacing = 20 * time.Millisecond
		}
		if pr.Size == 0 {
			pr.Size = 64
		}
		p.Probe = &pr
	}
	if p.Ramp != nil {
		ra := *p.Ramp
		if ra.First == 0 {
			ra.First = 1
		}
		if ra.Add == 0 {
			ra.Add = 1
		}
		p.Ramp = &ra
	}
	return p
}

// Validate reports every fault of p at once (errors.Join of *FieldError), nil when
// it can be run. Defaults count as filled in.
func (p Plan) Validate() error {
	p = p.Filled()
	var errs []error
	bad := func(cond bool, field string, v any, want string) {
		if cond {
			errs = append(errs, &FieldError{field, v, want})
		}
	}
	bad((p.Protocol == ProtocolNTTTCP) != (p.NTTTCP != nil), "protocol", p.Protocol, "ntttcp and its settings go together")
	if p.NTTTCP != nil {
		p.faultsNTTTCP(bad)
		p.faultsShared(bad)
		return errors.Join(errs...)
	}
	bad(p.Host == "", "host", `""`, "name the peer")
	bad(p.Port < 1 || p.Port > 65535, "port", p.Port, "must be 1…65535")
	bad(p.Family != 0 && p.Family != 4 && p.Family != 6, "family", p.Family, "must be 4 or 6")
	bad(p.Transport != TCP && p.Transport != UDP && p.Transport != SCTP, "transport", p.Transport, "must be tcp, udp or sctp")
	bad(p.Direction != Up && p.Direction != Down && p.Direction != Both, "direction", p.Direction, "must be up, down or both")
	maxStreams := MaxStreamsExt
	if p.Extension == "off" {
		maxStreams = MaxStreams
	}
	bad(p.Streams < 1 || p.Streams > maxStreams, "streams", p.Streams, fmt.Sprintf("must be 1…%d", maxStreams))
	ends := 0
	for _, set := range []bool{p.Duration > 0, p.Bytes > 0, p.Blocks > 0} {
		if set {
			ends++
		}
	}
	bad(ends > 1 || p.Endless && ends > 0, "duration", p.Duration, "give only one of duration, bytes, blocks")
	bad(p.Duration < 0 || p.Duration > MaxDuration, "duration", p.Duration, "must be 0…86400 s")
	bad(p.Bytes < 0, "bytes", p.Bytes, "must not be negative")
	bad(p.Blocks < 0, "blocks", p.Blocks, "must not be negative")
	bad(p.Omit < 0 || p.Omit > MaxOmit, "omit", p.Omit, "must be 0…600 s")
	bad(!p.OneRow && (p.Interval < MinInterval || p.Interval > MaxInterval), "interval", p.Interval, "must be 0.1…60 s")
	if p.Transport == UDP {
		bad(p.BlockSize != 0 && (p.BlockSize < MinUDPBlock || p.BlockSize > MaxUDPBlock), "block_size", p.BlockSize, "must be 16…65507 for udp")
	} else {
		bad(p.BlockSize < 0 || p.BlockSize > MaxBlockSize, "block_size", p.BlockSize, "must be 1…1048576")
	}
	bad(p.Bitrate < 0, "bitrate", p.Bitrate, "must not be negative")
	bad(p.Burst < 0 || p.Burst > MaxBurst, "burst", p.Burst, "must be 1…1000")
	bad(p.FQRate < 0, "fq_rate", p.FQRate, "must not be negative")
	bad(p.Window < 0 || p.Window > MaxWindow, "window", p.Window, "must be at most 512 MiB")
	bad(p.MSS != 0 && (p.MSS < MinMSS || p.MSS > MaxMSS), "mss", p.MSS, fmt.Sprintf("must be %d…%d", MinMSS, MaxMSS))
	bad(p.Pacing != PacingDefault && p.Pacing != PacingFrugal && p.Pacing != PacingPrecise, "pacing", p.Pacing, "must be frugal or precise")
	bad(!(p.CatchUp >= 0 && p.CatchUp <= MaxCatchUp) || p.CatchUp > 0 && !p.Steady, "catch_up", p.CatchUp, fmt.Sprintf("must be 0…%g, of a steady sender", MaxCatchUp))
	bad(p.Offload != OffloadAuto && p.Offload != OffloadOn && p.Offload != OffloadOff, "offload", p.Offload, "must be on or off")
	if pr := p.Probe; pr != nil {
		least := MinProbe
		if pr.TCP {
			least = 1
		}
		bad(pr.Spacing < MinProbeSpacing || pr.Spacing > time.Minute, "probe.spacing", pr.Spacing, "must be 1 ms … 1 min")
		bad(len(pr.Classes) > MaxClasses || slices.ContainsFunc(pr.Classes, func(c int) bool { return c < 1 || c > 255 || c&3 != 0 }), "probe.classes", pr.Classes, fmt.Sprintf("must be at most %d of 4…252, multiples of 4", MaxClasses))
		bad(pr.MTU && (!pr.Idle || pr.TCP || p.Transport != UDP), "probe.mtu", pr.MTU, "goes over udp, without a load")
		bad(pr.Size < least || pr.Size > MaxUDPBlock, "probe.size", pr.Size, fmt.Sprintf("must be %d…%d", least, MaxUDPBlock))
	}
	if st := p.Steer; st != nil {
		bad(p.Transport != UDP, "steer", "set", "only a udp test can be steered")
		bad(p.Direction == Both, "steer", "set", "only one direction can be steered")
		bad(p.Probe == nil || p.Probe.Idle, "steer", "set", "needs probes beside the load")
		bad(st.Type != "" && st.Type != "b" && st.Type != "c", "steer.type", st.Type, "must be b or c")
		bad(st.Max < 0, "steer.max", st.Max, "must not be negative")
	}
	if ra := p.Ramp; ra != nil {
		bad(p.Transport != TCP, "ramp", "set", "only the streams of a tcp test can begin one after the other")
		bad(p.Duration == 0 || p.OneRow, "ramp", "set", "needs a duration and intervals")
		bad(p.Probe != nil && p.Probe.Idle, "ramp", "set", "needs a load")
		bad(ra.First < 1 || ra.First > p.Streams, "ramp.first", ra.First, "must be 1 … streams")
		bad(ra.Add < 1, "ramp.add", ra.Add, "must be at least 1")
	}
	bad(p.File != "" && p.Transport == UDP, "file", p.File, "a file cannot be sent over udp")
	p.faultsSwap(bad)
	p.faultsShared(bad)
	bad(p.ClientPort < 0 || p.ClientPort > 65535, "client_port", p.ClientPort, "must be 1…65535")
	return errors.Join(errs...)
}

// faultsShared: limits that every protocol has.
func (p Plan) faultsShared(bad func(cond bool, field string, v any, want string)) {
	bad(p.TOS < 0 || p.TOS > 255, "tos", p.TOS, "must be 0…255")
	bad(p.FlowLabel < 0 || p.FlowLabel > MaxFlowLabel, "flow_label", p.FlowLabel, "must be 1…0xfffff")
	for _, c := range p.Affinity {
		bad(c < 0 || c > MaxAffinity, "affinity", c, "must be 0…1024")
	}
	bad(p.MaxBytes < 0, "max_bytes", p.MaxBytes, "must not be negative")
	bad(p.MaxRate < 0, "max_rate", p.MaxRate, "must not be negative")
}

// Sends reports whether end e sends under p.
func (p Plan) Sends(e result.End) bool {
	return p.Direction == Both || (p.Direction == Down) == (e == result.Server)
}

// Test describes p for the record of a run.
func (p Plan) Test() result.Test {
	return result.Test{
		Transport: string(p.Transport), MPTCP: p.MPTCP, Direction: string(p.Direction), Streams: p.Streams,
		Target: p.Host, Port: p.Port, Duration: p.Duration.Seconds(), Bytes: p.Bytes, Blocks: p.Blocks,
		Omit: p.Omit.Seconds(), Interval: p.Interval.Seconds(), BlockSize: p.BlockSize, Bitrate: p.Bitrate,
		Burst: p.Burst, Steady: p.Steady, CatchUp: p.CatchUp, FQRate: p.FQRate, Window: int(p.Window), MSS: p.MSS, NoDelay: p.NoDelay, TOS: p.TOS,
		FlowLabel: p.FlowLabel, Congestion: p.Congestion, ZeroCopy: p.Send == SendZeroCopy,
		SkipRxCopy: p.Receive == Discard, GSO: p.GSRO, GRO: p.GSRO, Counters64: p.Counters64, DF: p.DontFragment,
		Repeating: p.Repeating, Title: p.Title, ExtraData: p.ExtraData, File: p.File,
		MaxBytes: p.MaxBytes, MaxRate: p.MaxRate, Requested: p.Options, ProbeOnly: p.Probe != nil && p.Probe.Idle,
		Steered: p.Steer != nil, Ramped: p.Ramp != nil, Own: p.Own,
	}
}

// Decode reads a Plan from JSON, refusing unknown fields.
func Decode(data []byte) (Plan, error) {
	var p Plan
	err := strict(data, &p)
	return p, err
}

// Serve is a listener with its policy.
type Serve struct {
	Listen      []netip.AddrPort `json:"listen,omitempty"` // where to listen; unspecified address = dual stack
	BindDev     string           `json:"bind_dev,omitempty"`
	Family      int              `json:"family,omitempty"`
	OneOff      bool             `json:"one_off,omitempty"`
	IdleTimeout time.Duration    `json:"idle_timeout,omitempty"`
	Interval    time.Duration    `json:"interval,omitempty"`
	OneRow      bool             `json:"one_row,omitempty"`

	// Exclusive takes one test at a time and answers "busy" (iperf3 -s); Queue lets
	// fullbore clients wait instead. Neither: many tests at once.
	Exclusive bool `json:"exclusive,omitempty"`
	Queue     bool `json:"queue,omitempty"`

	Allow       []netip.Prefix `json:"allow,omitempty"`       // empty = everybody
	MaxTests    int            `json:"max_tests,omitempty"`   // at once; 0 = no limit
	MaxStreams  int            `json:"max_streams,omitempty"` // per test and direction; 0 = protocol's
	MaxRate     int64          `json:"max_rate,omitempty"`    // bit/s per test over all streams, enforced by pacing; 0 = none
	MaxDuration time.Duration  `json:"max_time,omitempty"`    // --server-max-duration, --max-time
	// RateLimit refuses tests that ask for more and ends tests that average more over
	// RateLimitWindow (iperf3 --server-bitrate-limit).
	RateLimit       int64         `json:"rate_limit,omitempty"`
	RateLimitWindow time.Duration `json:"rate_limit_window,omitempty"` // default 5 s

	ReceiveTimeout time.Duration `json:"receive_timeout,omitempty"` // default 120 s
	SendTimeout    time.Duration `json:"send_timeout,omitempty"`
	Keepalive      *Keepalive    `json:"keepalive,omitempty"`
	Affinity       []int         `json:"affinity,omitempty"`
	File           string        `json:"file,omitempty"`
	MPTCP          bool          `json:"mptcp,omitempty"`
	Receive        Receive       `json:"receive,omitempty"` // default of this server; a client's skip_rx_copy wins
	Send           Send          `json:"send,omitempty"`

	PrivateKey  []byte        `json:"-"`                    // PEM; login required when set with Users
	UsersFile   string        `json:"users_file,omitempty"` // read anew for each test
	TimeSkew    time.Duration `json:"time_skew,omitempty"`  // default 10 s
	PKCS1       bool          `json:"pkcs1,omitempty"`
	Extension   string        `json:"extension,omitempty"` // "" = answer it, "off"
	NoSwap      bool          `json:"no_swap,omitempty"`   // never play a client's test as the client
	FullFacts   bool          `json:"full_facts,omitempty"`
	JSONOutput  bool          `json:"json_output,omitempty"` // server output is offered as JSON
	DrainBudget time.Duration `json:"drain_budget,omitempty"`

	// NTTTCP is the receiver's own side of an NTTTCP test, where each end has its own
	// ports, times and sizes. nil = NTTTCP senders are not served.
	NTTTCP *Plan `json:"ntttcp,omitempty"`
}

// Filled returns s with the defaults put in.
func (s Serve) Filled() Serve {
	if len(s.Listen) == 0 {
		s.Listen = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), DefaultPort)}
	}
	if s.ReceiveTimeout == 0 {
		s.ReceiveTimeout = DefaultReceiveTimeout
	}
	if s.Interval == 0 && !s.OneRow {
		s.Interval = time.Second
	}
	if s.RateLimit > 0 && s.RateLimitWindow == 0 {
		s.RateLimitWindow = 5 * time.Second
	}
	if s.TimeSkew == 0 {
		s.TimeSkew = 10 * time.Second
	}
	return s
}

// Allowed reports whether a is in one of the prefixes; an empty list allows everybody. A
// zone does not count.
func Allowed(list []netip.Prefix, a netip.Addr) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// Validate reports every fault at once.
func (s Serve) Validate() error {
	s = s.Filled()
	var errs []error
	bad := func(cond bool, field string, v any, want string) {
		if cond {
			errs = append(errs, &FieldError{field, v, want})
		}
	}
	bad(s.Exclusive && s.MaxTests > 1, "max_tests", s.MaxTests, "an exclusive server takes one test")
	bad(s.IdleTimeout < 0 || s.IdleTimeout > MaxDuration, "idle_timeout", s.IdleTimeout, "must be 1…86400 s")
	bad(!s.OneRow && (s.Interval < MinInterval || s.Interval > MaxInterval), "interval", s.Interval, "must be 0.1…60 s")
	bad(s.MaxTests < 0, "max_tests", s.MaxTests, "must not be negative")
	bad(s.MaxStreams < 0 || s.MaxStreams > MaxStreamsExt, "max_streams", s.MaxStreams, "must be 0…10000")
	bad(s.MaxRate < 0, "max_rate", s.MaxRate, "must not be negative")
	bad(s.RateLimit < 0, "rate_limit", s.RateLimit, "must not be negative")
	bad(s.MaxDuration < 0 || s.MaxDuration > MaxDuration, "max_time", s.MaxDuration, "must be 0…86400 s")
	if s.NTTTCP != nil {
		bad(s.NTTTCP.NTTTCP == nil || s.NTTTCP.NTTTCP.Sends(), "ntttcp", s.NTTTCP.Protocol, "must be a receiver's plan")
		if err := s.NTTTCP.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("ntttcp: %w", err))
		}
	}
	bad((len(s.PrivateKey) > 0) != (s.UsersFile != ""), "users_file", s.UsersFile, "a login needs both the private key and the users file")
	return errors.Join(errs...)
}

func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

// faultsSwap: what a test must be whose roles are exchanged.
func (p Plan) faultsSwap(bad func(cond bool, field string, v any, want string)) {
	sw := p.Swap
	if sw == nil {
		return
	}
	bad(p.Transport != TCP || p.MPTCP, "swap", "set", "the roles of a tcp test can be exchanged, of no other")
	bad(p.Duration <= 0, "swap", "set", "needs a duration")
	bad(p.Probe != nil || p.File != "" || p.Ramp != nil, "swap", "set", "goes without probes, files and streams that begin later")
	bad(p.Extension == "off", "swap", "set", "needs the extension")
	bad(sw.Port != 0 && (sw.Port < MinSwapPort || sw.Port > 65535), "swap.port", sw.Port, "must be 1024…65535")
}
