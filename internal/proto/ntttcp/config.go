package ntttcp

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// Defaults of ntttcp-for-linux 1.4 (linux §1, §2).
const (
	DefaultPort       = 5001
	DefaultPorts      = 16
	DefaultThreads    = 4
	DefaultDuration   = 60 * time.Second
	DefaultInterval   = 500 * time.Millisecond
	DefaultSendBuffer = 128 << 10
	DefaultRecvBuffer = 64 << 10
	MaxPorts          = 512
	MaxThreads        = 25600
	MaxConns          = 1000
	maxWaiting        = 7 // multi-client: senders that wait for the last one (linux §3.4)
)

// Config is one end's settings of a test. Zero values mean the default.
type Config struct {
	Port int // first data port; 5001
	// Ports, Threads (per port) and Conns (per thread) multiply to the number of connections.
	// A receiver uses Ports only.
	Ports, Threads, Conns int
	Transport             plan.Transport

	Warmup   time.Duration
	Duration time.Duration // 0 = 60 s, unless Endless or Follow
	Cooldown time.Duration
	Endless  bool // until interrupted (-t 0)
	// Follow: a receiver measures what the sender proposes.
	Follow bool

	// Blocks ends a sender's test when each connection has made so many calls; Duration then bounds
	// it.
	Blocks int64

	NoSync bool
	// Windows: the sender speaks the Windows dialect, a token for each data connection. Hosts are
	// then the receivers of its connections, one each; empty = Host for all. WaitTimeout bounds
	// each wait of the set-up; 0 = no limit.
	Windows     bool
	Hosts       []string
	WaitTimeout time.Duration
	// PortSync: a Windows sender asks its receiver for each connection's port, at Port (-sp). A
	// receiver answers at the port below Port.
	PortSync bool

	// Brief: a sender ends when its own times are over, also in a longer cycle, and tells the
	// receiver so. The originals send on.
	Brief bool

	// Last: this sender is the last one (-L). Multi: a receiver waits for it (-M).
	Last, Multi bool

	Host       string // sender: the receiver's
	Family     int
	BindHost   string
	BindDev    string
	SourcePort int // sender: local port of the first connection (-f); 0 = any

	BlockSize int
	Bitrate   int64 // all connections together, payload bit/s (-B); 0 = unlimited
	FQRate    int64 // likewise, by the kernel
	NoDelay   bool
	Window    int64 // SO_SNDBUF and SO_RCVBUF (Windows: -sb, -rb); 0 = autotuning
	TOS       int   // of the sender's data connections
	Interval  time.Duration
	Send      plan.Send
	Receive   plan.Receive
	Affinity  []int
	MaxRate   int64 // budgets, enforced by the engine
	MaxBytes  int64

	// Expect: a receiver of Windows senders waits for so many data connections, of all senders
	// together, before it lets them begin; 0 = those that are there at the first token.
	Expect int

	// A receiver's policy. Exclusive: one test at a time, the others are told that it is busy.
	// OneOff: the receiver is done after one test.
	Exclusive, OneOff bool
	Allow             []netip.Prefix // empty = everybody
	MaxTests          int            // at once; 0 = no limit
	MaxStreams        int            // per test; 0 = no limit
	MaxDuration       time.Duration  // a longer cycle is not agreed to; 0 = no limit

	// Extension is what this end does with a fullbore: "" = it speaks the extension, "quiet" = it
	// wants no live events of the other end, "off" = it is as a real tool.
	Extension string
	FullFacts bool // a receiver tells everything about its machine, not only what a stranger may know

	// CountCalls counts the sends or receives, TimeCalls times them too. Verify makes a receiver
	// look at every byte of TCP (Windows: -d).
	CountCalls, TimeCalls, Verify bool
	// Message exchanges whole messages of BlockSize, one at a time; both ends must be told.
	// Spacing lets a sender send one in each period.
	Message traffic.MessageMode
	Spacing time.Duration
	// Burn is how many turns of a loop follow each call. WaitAll lets a receiver's calls last
	// until BlockSize bytes are there.
	Burn    int
	WaitAll bool
	// Outstanding is how many calls of a TCP connection are under way at once, where the system
	// has overlapped calls (Windows: -a); 0 = the engine's choice.
	Outstanding int
	// EStats reads the system's extended statistics of each TCP connection where the measured time
	// begins and ends.
	EStats bool

	Options []string // the user's words, for the record
}

// filled returns c with the defaults put in; sends = for a sender.
func (c Config) filled(sends bool) Config {
	def := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	def(&c.Port, DefaultPort)
	def(&c.Ports, DefaultPorts)
	def(&c.Threads, DefaultThreads)
	def(&c.Conns, 1)
	if c.Transport == "" {
		c.Transport = plan.TCP
	}
	if c.Duration == 0 && !c.Endless && !c.Follow {
		c.Duration = DefaultDuration
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	switch {
	case c.BlockSize > 0:
	case sends:
		c.BlockSize = DefaultSendBuffer
	default:
		c.BlockSize = DefaultRecvBuffer
	}
	if c.Transport == plan.UDP {
		c.BlockSize = min(c.BlockSize, plan.MaxUDPBlock)
	}
	return c
}

// Validate reports every fault of a sender's or a receiver's settings.
func (c Config) Validate(sends bool) error {
	c = c.filled(sends)
	var errs []error
	bad := func(cond bool, field string, v any, want string) {
		if cond {
			errs = append(errs, &plan.FieldError{Field: field, Value: v, Want: want})
		}
	}
	bad(len(c.Hosts) > 0 && len(c.Hosts) != c.connections(), "hosts", len(c.Hosts), "must be one for each connection")
	bad(c.Windows && (c.Last || c.Multi), "last", c.Last, "is of the Linux dialect")
	bad(c.PortSync && !c.Windows, "port_sync", c.PortSync, "is of the Windows dialect")
	bad(c.WaitTimeout < 0, "wait_timeout", c.WaitTimeout, "must not be negative")
	bad(sends && c.Host == "" && len(c.Hosts) == 0, "host", `""`, "name the receiver")
	bad(c.Port < 1 || c.Port+c.Ports-1 > 65535, "port", c.Port, "must leave room for all ports below 65536")
	bad(!c.NoSync && !c.Windows && c.Port == 1, "port", c.Port, "the port below it is needed to synchronise")
	bad(!c.NoSync && c.Windows && c.Port+c.Ports-1+TokenOffset > 65535, "port", c.Port, "the ports 1000 above the data ports are needed to synchronise")
	most := MaxPorts
	if c.Windows {
		most = 65535
	}
	bad(c.Ports < 1 || c.Ports > most, "ports", c.Ports, fmt.Sprintf("must be 1…%d", most))
	bad(c.Threads < 1 || c.Threads > MaxThreads, "threads", c.Threads, fmt.Sprintf("must be 1…%d", MaxThreads))
	bad(c.Conns < 1 || c.Conns > MaxConns, "conns", c.Conns, fmt.Sprintf("must be 1…%d", MaxConns))
	bad(c.Transport != plan.TCP && c.Transport != plan.UDP, "transport", c.Transport, "must be tcp or udp")
	bad(c.Family != 0 && c.Family != 4 && c.Family != 6, "family", c.Family, "must be 4 or 6")
	bad(c.Warmup < 0, "warmup", c.Warmup, "must not be negative")
	bad(c.Duration < 0, "duration", c.Duration, "must not be negative")
	bad(c.Cooldown < 0, "cooldown", c.Cooldown, "must not be negative")
	bad(c.Endless && c.Duration > 0, "duration", c.Duration, "give no duration with endless")
	bad(c.Follow && sends, "follow", c.Follow, "is a receiver's")
	bad(c.Last && !sends, "last", c.Last, "is a sender's")
	bad(c.Multi && sends, "multi", c.Multi, "is a receiver's")
	bad(c.NoSync && (c.Last || c.Multi), "no_sync", c.NoSync, "several senders need to be synchronised")
	bad(c.SourcePort < 0 || c.SourcePort > 0 && c.SourcePort+c.connections()-1 > 65535, "source_port", c.SourcePort, "must leave room for all connections below 65536")
	bad(c.BlockSize < 1, "block_size", c.BlockSize, "must be positive")
	bad(c.Bitrate < 0, "bitrate", c.Bitrate, "must not be negative")
	bad(c.FQRate < 0, "fq_rate", c.FQRate, "must not be negative")
	bad(c.Interval < plan.MinInterval/10, "interval", c.Interval, "must be at least 10 ms")
	bad(c.Blocks < 0 || c.Blocks > 0 && (c.Warmup > 0 || c.Cooldown > 0), "blocks", c.Blocks, "are counted without warm-up and cool-down")
	bad(c.Extension != "" && c.Extension != "quiet" && c.Extension != "off", "extension", c.Extension, `must be "quiet" or "off"`)
	bad(c.Expect < 0, "expect", c.Expect, "must not be negative")
	bad(c.MaxTests < 0, "max_tests", c.MaxTests, "must not be negative")
	bad(c.MaxStreams < 0, "max_streams", c.MaxStreams, "must not be negative")
	bad(c.MaxDuration < 0, "max_time", c.MaxDuration, "must not be negative")
	return errors.Join(errs...)
}

// clamp cuts the buffer to what the engine moves at once.
func (c *Config) clamp() []result.Notice {
	if c.BlockSize <= plan.MaxBlockSize {
		return nil
	}
	n := result.Notice{
		Code: "block-clamped", Level: result.Info,
		Text: fmt.Sprintf("%d bytes are moved with each call instead of %d: more would not be faster", plan.MaxBlockSize, c.BlockSize),
	}
	c.BlockSize = plan.MaxBlockSize
	return []result.Notice{n}
}

// connections is how many a sender makes.
func (c Config) connections() int { return c.Ports * c.Threads * c.Conns }

// portOf is the data port of connection i: thread by thread, port by port (linux §1).
func (c Config) portOf(i int) int { return c.Port + i/(c.Threads*c.Conns) }

// cycle is what a sender proposes; 0 = until interrupted.
func (c Config) cycle() time.Duration {
	if c.Endless {
		return 0
	}
	return c.Warmup + c.Duration + c.Cooldown
}

// test describes a run of s for its record.
func (c Config) test(s schedule, streams int) result.Test {
	return result.Test{
		Transport: string(c.Transport), Direction: string(plan.Up), Streams: streams, Target: c.Host, Port: c.Port,
		Duration: max(0, s.measured).Seconds(), Omit: s.warmup.Seconds(), Interval: c.Interval.Seconds(), BlockSize: c.BlockSize, Blocks: c.Blocks * int64(streams),
		Bitrate: c.each(c.Bitrate, streams), FQRate: c.each(c.FQRate, streams), Window: int(c.Window), NoDelay: c.NoDelay,
		ZeroCopy: c.Send == plan.SendZeroCopy, SkipRxCopy: c.Receive == plan.Discard,
		MaxBytes: c.MaxBytes, MaxRate: c.MaxRate, Requested: c.Options,
	}
}

func (c Config) dialect() string {
	if c.Windows {
		return string(plan.NTTTCPWindows)
	}
	return string(plan.NTTTCPLinux)
}

// facts is what only NTTTCP knows of a test; cycle is the agreed one, nil = none.
func (c Config) facts(sends bool, cycle *time.Duration) *result.NTTTCP {
	n := &result.NTTTCP{
		Dialect: c.dialect(), Ports: c.Ports, BasePort: c.basePort(sends), NoSync: c.NoSync, MultiClient: c.Multi, LastClient: c.Last,
		Cooldown: c.Cooldown.Seconds(),
	}
	if sends {
		n.Threads, n.Connections = c.Threads, c.Conns
	}
	if cycle != nil {
		s := cycle.Seconds()
		n.Cycle = &s
	}
	return n
}

// basePort is what the user gave.
func (c Config) basePort(sends bool) int {
	if c.PortSync && !sends {
		return c.Port - 1
	}
	return c.Port
}

// each is one connection's share of a rate that all have together.
func (c Config) each(rate int64, streams int) int64 {
	if rate <= 0 || streams <= 0 {
		return 0
	}
	return max(1, rate/int64(streams))
}
