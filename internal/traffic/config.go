package traffic

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// Config says what to do with the flows. The zero value of a field means "none" or
// "no rule" where its comment says nothing else.
type Config struct {
	End       result.End // which end this is; goes into events
	Transport plan.Transport
	BlockSize int   // bytes a write or datagram; 0 = plan.DefaultTCPBlock for TCP
	Bitrate   int64 // payload bit/s per flow
	Burst     int   // blocks sent back to back under Bitrate
	// MaxRate (payload bit/s) and MaxBytes are budgets over all flows, both ways, from
	// Start on, enforced: senders and readers are paced to an equal share of MaxRate; a
	// sender never writes past MaxBytes, a receiver stops within one read of it.
	MaxRate, MaxBytes int64

	// Began is when the test began, where that is before Start: then it is t0, as what has come
	// since waits to be received and will be counted. The zero value means Start.
	Began          time.Time
	Duration, Omit time.Duration // Duration counts from the end of Omit; 0 = no time rule
	// Bytes and Blocks end the run when the flows of one direction together have moved
	// so much since the end of Omit. Senders stop by themselves after whole blocks:
	// Bytes ≤ sent < Bytes + flows×BlockSize, and Blocks exactly.
	Bytes, Blocks int64
	// Open is how many of the sending flows, in the order given, send from the start; the others wait for
	// Engine.Open. 0 = all. TCP streams only.
	Open int
	// BlocksEach: each sending flow sends Blocks of its own and then no more; the run ends when all
	// have. There is no Omit then.
	BlocksEach bool
	// Limited says that bytes, blocks or a file end this run, here or at the peer. It
	// decides what a receiver's Total.End is; set by itself when Bytes or Blocks is.
	Limited  bool
	Interval time.Duration // length of a row; 0 = one row at the end (and none for Omit)

	Send    plan.Send
	Receive plan.Receive
	// Payload is random bytes, or with Repeating "0123456789…", or with Fill, when it is not
	// 0, that byte over and over; in datagrams after the header, where there is one.
	Repeating bool
	Fill      byte
	// Source is what senders send in file mode, Sink where receivers write; nil = payload
	// and discard. A Source that is an io.ReaderAt is sent whole by every sending flow;
	// any other is shared between them. Calls of Read and Write are serialised.
	Source     io.Reader
	Sink       io.Writer
	SourceSize int64

	Affinity       []int         // CPUs for the workers, in turn
	ReceiveTimeout time.Duration // no byte on any receiving flow for so long ends the run
	// Host is called once per row, on the sampling goroutine.
	Host func() *result.HostSample
	// Out gets KindInterval events and notices, one at a time, until Finish returns. The
	// caller stamps Seq.
	Out          result.Sink
	KernelPacing bool // let the kernel pace Bitrate where that is exact enough

	// Outstanding is how many sends or receives of each flow are under way at once, at most, where
	// the system has overlapped calls (Windows); 0 = as many as the engine thinks good, for the
	// cheapest ways of Send and Receive alone, and 1 = one at a time. Over UDP, with a file, with
	// messages and for a receiver with a budget it is always one.
	Outstanding int
	// Verify makes receivers look at every byte: one that is not Fill ends its flow with a
	// *CorruptError. Payload is then copied whatever Receive says. Datagrams must be bare.
	Verify bool

	// Message makes flows exchange whole messages of BlockSize, one at a time; "" = a stream, or
	// datagrams. Over UDP they are bare.
	Message MessageMode
	// OnMessage gets what each message of the jitter mode says, at the receiver, also in the
	// omitted part. The flow's worker calls it, so those of several flows may at once.
	OnMessage func(flow int, m Message)
	// Spacing lets a sender send one block in each period from Start on and no more, whole and
	// alone; what is late is not made up. 0 = as fast as Bitrate lets it.
	Spacing time.Duration

	// CountCalls fills FlowTotal.IO: the finished calls of the measured time, each of at most
	// BlockSize bytes. A datagram is a call, however many of them go through the system at once.
	// TimeCalls counts and times them; datagrams then are sent and received one by one. Round
	// trips are always counted and timed.
	CountCalls, TimeCalls bool
	// WaitAll makes a receive of a stream last until BlockSize bytes are there; it counts calls.
	WaitAll bool
	// Burn is how many turns of a loop a worker spends after each call, to load the processor; it
	// counts calls.
	Burn int

	UDP UDPConfig
}

// UDPConfig is what only UDP flows need.
type UDPConfig struct {
	// Bare datagrams are BlockSize bytes of payload and nothing else. A receiver counts all that
	// come, of whatever length, and what it was told of their number, loss, order and delay is
	// nil.
	Bare bool
	Wide bool // 64-bit sequence numbers
	// Nonce is the run's; it and the send time in ns go into bytes 16–31 where BlockSize is
	// at least 32, and a datagram without it is foreign. 0 = iperf3's header alone.
	Nonce    uint64
	Pacing   plan.Pacing
	Steady   bool    // what is late by more than 2 ms is given up, not made up; not with Iperf3
	CatchUp  float64 // with Steady: share of the rate by which it is made up after all, up to 100 ms of it; 0 = it is not
	Offload  plan.Offload
	FirstSeq uint64 // of every flow; 0 = 1, what every peer expects
	// Drain is how much silence ends the count of the tail, at least 200 ms: 4 round trips.
	Drain time.Duration
	// Iperf3 keeps a sender's account as iperf3 does, so that the drop-in's figures compare:
	// what this host's own queue drops counts as sent, and in Refused as well, and nothing
	// that is late is given up.
	Iperf3 bool
	// GoneAfter is how many ICMP answers that nobody listens end a flow, whatever got through before
	// (ErrGone); 0 = a sender goes on, unless nothing ever got through.
	GoneAfter int64
	// Window is a receive buffer that was asked for and set; the engine does not grow it. 0 =
	// it makes room for the rate.
	Window int64
}

func validate(cfg Config, flows []Flow) error {
	var errs []error
	bad := func(cond bool, field string, v any, want string) {
		if cond {
			errs = append(errs, &plan.FieldError{Field: field, Value: v, Want: want})
		}
	}
	bad(len(flows) == 0, "flows", 0, "give at least one")
	bad(cfg.Transport != plan.TCP && cfg.Transport != plan.UDP, "transport", cfg.Transport, "must be tcp or udp")
	if cfg.Transport == plan.UDP {
		cfg.validateUDP(bad)
	}
	bad(cfg.BlockSize < 1 || cfg.BlockSize > plan.MaxBlockSize, "block_size", cfg.BlockSize, "must be 1…1048576")
	cfg.validateMessages(bad)
	bad(cfg.Outstanding < 0, "outstanding", cfg.Outstanding, "must not be negative")
	bad(cfg.Burn < 0, "burn", cfg.Burn, "must not be negative")
	bad(cfg.Verify && cfg.Fill == 0, "verify", cfg.Verify, "needs a payload of one byte")
	bad(cfg.Bytes < 0, "bytes", cfg.Bytes, "must not be negative")
	bad(cfg.Blocks < 0, "blocks", cfg.Blocks, "must not be negative")
	bad(cfg.BlocksEach && (cfg.Blocks == 0 || cfg.Omit > 0), "blocks_each", cfg.BlocksEach, "needs blocks, and no omitted part")
	bad(cfg.Bytes > 0 && cfg.Blocks > 0, "blocks", cfg.Blocks, "give only one of bytes and blocks")
	bad(cfg.Bitrate < 0, "bitrate", cfg.Bitrate, "must not be negative")
	bad(cfg.Burst < 0, "burst", cfg.Burst, "must not be negative")
	bad(cfg.MaxRate < 0, "max_rate", cfg.MaxRate, "must not be negative")
	bad(cfg.MaxBytes < 0, "max_bytes", cfg.MaxBytes, "must not be negative")
	bad(cfg.Interval < 0, "interval", cfg.Interval, "must not be negative")
	bad(cfg.Duration < 0, "duration", cfg.Duration, "must not be negative")
	bad(cfg.Open < 0 || cfg.Open > 0 && (cfg.Transport != plan.TCP || cfg.usesMessages()), "open", cfg.Open, "must not be negative, and is of tcp streams")
	bad(cfg.Omit < 0, "omit", cfg.Omit, "must not be negative")
	for i, f := range flows {
		bad(f.Conn == nil, fmt.Sprintf("flows[%d].conn", i), nil, "must be set")
	}
	if len(errs) > 0 {
		return fmt.Errorf("traffic: %w", errors.Join(errs...))
	}
	return nil
}

func (c *Config) validateUDP(bad func(cond bool, field string, v any, want string)) {
	least := plan.MinUDPBlock
	if c.UDP.Bare {
		least = 1
	}
	bad(c.BlockSize < least || c.BlockSize > plan.MaxUDPBlock, "block_size", c.BlockSize, fmt.Sprintf("must be %d…%d for udp", least, plan.MaxUDPBlock))
	bad(c.Source != nil || c.Sink != nil, "file", "set", "a file cannot be sent over udp")
	u := &c.UDP
	bad(c.Verify && !u.Bare, "verify", c.Verify, "must be of bare datagrams")
	bad(u.Bare && (u.Wide || u.Nonce != 0 || u.FirstSeq != 0), "udp.bare", u.Bare, "leaves no room for numbers and nonces")
	bad(!u.Wide && u.FirstSeq > math.MaxUint32, "udp.first_seq", u.FirstSeq, "must fit 32 bits")
	bad(u.FirstSeq > math.MaxInt64, "udp.first_seq", u.FirstSeq, "must be less than 2^63")
	bad(u.Drain < 0, "udp.drain", u.Drain, "must not be negative")
	bad(u.Pacing != plan.PacingDefault && u.Pacing != plan.PacingFrugal && u.Pacing != plan.PacingPrecise, "udp.pacing", u.Pacing, "must be frugal or precise")
	bad(u.Offload != plan.OffloadAuto && u.Offload != plan.OffloadOn && u.Offload != plan.OffloadOff, "udp.offload", u.Offload, "must be on or off")
}
