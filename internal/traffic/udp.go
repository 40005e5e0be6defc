package traffic

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

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

// ErrGone ends a flow whose datagrams were answered by ICMP as often as UDPConfig.GoneAfter says.
var ErrGone = errors.New("traffic: nobody listens at the other end (ICMP port unreachable)")

// errRefused ends a flow of which every datagram came back.
var errRefused = errors.New("traffic: nobody listens at the other end: every datagram was answered by an ICMP port unreachable")

func (e *Engine) udp() bool { return e.cfg.Transport == plan.UDP }

// extended reports that datagrams carry the extension's bytes.
func (e *Engine) extended() bool {
	return e.cfg.UDP.Nonce != 0 && e.cfg.BlockSize >= datagram.ExtSize
}

// udpState is what an engine of UDP flows has in common.
type udpState struct {
	// stop is when the rate window of the receivers ended, ns since t0; math.MaxInt64
	// before.
	stop atomic.Int64
	// base is CLOCK_MONOTONIC at t0: what is in the headers.
	base    int64
	late    *lateness // of a thinned run's senders
	fastRx  bool      // receivers take batches
	policed atomic.Int64

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
