package traffic

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// UDPConfig is what only UDP flows need.
type UDPConfig struct {
	Wide bool // 64-bit sequence numbers
	// Nonce is the run's; it and the send time in ns go into bytes 16–31 where BlockSize is
	// at least 32, and a datagram without it is foreign. 0 = iperf3's header alone.
	Nonce    uint64
	Pacing   plan.Pacing
	Offload  plan.Offload
	FirstSeq uint64 // of every flow; 0 = 1, what every peer expects
	// Drain is how much silence ends the count of the tail, at least 200 ms: 4 round trips.
	Drain time.Duration
	// Iperf3 keeps a sender's account as iperf3 does, so that the drop-in's figures compare:
	// what this host's own queue drops counts as sent, and in Refused as well, and nothing
	// that is late is given up.
	Iperf3 bool
	// Window is a receive buffer that was asked for and set; the engine does not grow it. 0 =
	// it makes room for the rate.
	Window int64
}

// How long a receiver counts on after the measured time, for loss only (design §5).
const (
	tailSilence = 200 * time.Millisecond
	tailMost    = 2 * time.Second
)

const (
	// A precise sender sleeps until preciseSpin before the due time when that is far off.
	preciseSpin = int64(time.Millisecond)
	// policeEvery is how often a receiver compares what came with MaxRate.
	policeEvery = int64(100 * time.Millisecond)
)

// TooLongError says that datagrams do not fit the path and must not be cut.
type TooLongError struct {
	Size   int // payload bytes of a datagram
	Usable int // payload bytes that fit; 0 = the system does not tell
}

func (e *TooLongError) Error() string {
	if e.Usable <= 0 {
		return fmt.Sprintf("traffic: datagrams of %d bytes do not fit the path", e.Size)
	}
	return fmt.Sprintf("traffic: datagrams of %d bytes do not fit the path: usable are %d", e.Size, e.Usable)
}

// errRefused ends a flow of which every datagram came back.
var errRefused = errors.New("traffic: nobody listens at the other end: every datagram was answered by an ICMP port unreachable")

func (e *Engine) udp() bool { return e.cfg.Transport == plan.UDP }

// extended reports that datagrams carry the extension's bytes.
func (e *Engine) extended() bool {
	return e.cfg.UDP.Nonce != 0 && e.cfg.BlockSize >= datagram.ExtSize
}

func (c *Config) validateUDP(bad func(cond bool, field string, v any, want string)) {
	bad(c.BlockSize < plan.MinUDPBlock || c.BlockSize > plan.MaxUDPBlock, "block_size", c.BlockSize, "must be 16…65507 for udp")
	bad(c.Source != nil || c.Sink != nil, "file", "set", "a file cannot be sent over udp")
	u := &c.UDP
	bad(!u.Wide && u.FirstSeq > math.MaxUint32, "udp.first_seq", u.FirstSeq, "must fit 32 bits")
	bad(u.FirstSeq > math.MaxInt64, "udp.first_seq", u.FirstSeq, "must be less than 2^63")
	bad(u.Drain < 0, "udp.drain", u.Drain, "must not be negative")
	bad(u.Pacing != plan.PacingDefault && u.Pacing != plan.PacingFrugal && u.Pacing != plan.PacingPrecise, "udp.pacing", u.Pacing, "must be frugal or precise")
	bad(u.Offload != plan.OffloadAuto && u.Offload != plan.OffloadOn && u.Offload != plan.OffloadOff, "udp.offload", u.Offload, "must be on or off")
}

// udpState is what an engine of UDP flows has in common.
type udpState struct {
	// stop is when the rate window of the receivers ended, ns since t0; math.MaxInt64
	// before.
	stop atomic.Int64
	// base is CLOCK_MONOTONIC at t0: what is in the headers.
	base     int64
	measured atomic.Bool // the omitted part is over
	late     *lateness   // of a thinned run's senders
	fastRx   bool        // receivers take batches
	policed  atomic.Int64

	mu      sync.Mutex
	pending []result.Notice // to be emitted by the sampler
	told    map[string]bool // codes
}

// later queues a notice from a worker; a code is told once.
func (u *udpState) later(n result.Notice) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told == nil {
		u.told = map[string]bool{}
	}
	if !u.told[n.Code] {
		u.told[n.Code] = true
		u.pending = append(u.pending, n)
	}
}

func (u *udpState) takeNotices() []result.Notice {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.pending
	u.pending = nil
	return n
}

// prepareUDP makes the flows' state and sizes the receive buffers.
func (e *Engine) prepareUDP() error {
	if e.cfg.UDP.FirstSeq == 0 {
		e.cfg.UDP.FirstSeq = 1
	}
	e.u.stop.Store(noStop)
	var senders int64
	for _, s := range e.streams {
		if s.Send {
			senders++
		}
	}
	var slot int64
	for _, s := range e.streams {
		if s.Send {
			s.tx = newUDPSender(e, slot, senders)
			slot++
			continue
		}
		s.rx = newUDPReceiver(e)
		if e.cfg.UDP.Window > 0 {
			continue
		}
		room := receiveRoom(e.cfg.Bitrate, e.cfg.BlockSize)
		notices, err := s.Conn.GrowReceive(room)
		if err == nil && room < roomLeast {
			// Beyond what the rate needs, for a host that does not let this program run for long:
			// not to have it is no fault.
			_, _ = s.Conn.GrowReceive(roomLeast)
		}
		switch {
		case errors.Is(err, errors.ErrUnsupported):
		case err != nil:
			return fmt.Errorf("traffic: %w", err)
		default:
			for _, n := range notices {
				if !e.noticed(n.Code) {
					e.notice(n.Code, n.Level, n.Text)
					e.notices[len(e.notices)-1].Fix = n.Fix
				}
			}
		}
	}
	return nil
}

func (e *Engine) noticed(code string) bool {
	for _, n := range e.notices {
		if n.Code == code {
			return true
		}
	}
	return false
}

const (
	// A receiver that is not running for so long must find everything in its buffer.
	roomSpan = 50 * time.Millisecond
	roomMost = 64 << 20
	// roomLeast is taken where the system gives it.
	roomLeast = 2 << 20
	// roomUnknown is for a sender that goes as fast as it can: 1 ms at 64 Gbit/s.
	roomUnknown = 8 << 20
	// skbOverhead is what the kernel charges a datagram beyond its payload, about, on top
	// of the doubling of SO_RCVBUF (socket(7)): a small one costs 768 bytes or more.
	skbOverhead = 512
)

// receiveRoom is the receive buffer for datagrams of size bytes at rate bit/s; a rate of
// 0 is not known.
func receiveRoom(rate int64, size int) int64 {
	if rate <= 0 {
		return roomUnknown
	}
	datagrams := float64(rate) / 8 / float64(size) * roomSpan.Seconds()
	return int64(min(datagrams*float64(size+skbOverhead), roomMost))
}

// tooLong makes the error of a datagram that the system did not take for its size.
func (s *stream) tooLong() error {
	usable, err := s.Conn.UsableDatagram()
	if err != nil {
		usable = 0
	}
	return &TooLongError{Size: s.e.cfg.BlockSize, Usable: usable}
}

// mono returns CLOCK_MONOTONIC at engine time now.
func (e *Engine) monoAt(now int64) int64 { return e.u.base + now }

// startUDP puts the header's clock beside the engine's.
func (e *Engine) startUDP() {
	if e.mono != nil {
		e.u.base = *e.mono
		return
	}
	e.u.base = osnet.Monotonic() - e.now()
}
