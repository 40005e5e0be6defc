package traffic

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// udpPortable moves one flow's datagrams with a goroutine over its net.Conn, on every
// system and for connections that share one socket: one datagram a call, or several where
// the system cuts a longer write (USO) and joins what comes (URO).
type udpPortable struct {
	s       *stream
	i       int
	buf     []byte
	count   int  // datagrams that one write may have
	segment bool // the system cuts it
	joined  bool // the system may hand over several datagrams as one message
	wake    chan struct{}
	timer   *time.Timer
	beat    int64
}

func newUDPPortable(s *stream, i int) *udpPortable {
	p := &udpPortable{s: s, i: i, wake: make(chan struct{}, 1), count: 1}
	e := s.e
	if !s.Send {
		p.joined = osnet.Capabilities().Coalesce && e.cfg.UDP.Offload != plan.OffloadOff && !e.cfg.TimeCalls && e.cfg.Message == "" && s.Conn.SetCoalesce(true) == nil
		if s.Conn.SetStamps() != nil && (!e.cfg.UDP.Bare || e.cfg.Message == Jitter) {
			e.noticeStamps()
		}
		return p
	}
	if s.tx.pace.quantum == quantum {
		s.tx.pace.quantum = quantumCoarse
	}
	s.tx.pace.anchored = s.tx.pace.quantum > 0
	if osnet.Capabilities().Segment && e.cfg.UDP.Offload != plan.OffloadOff && !e.cfg.TimeCalls {
		p.count = max(1, min(superDatagramsPortable, plan.MaxUDPBlock/e.cfg.BlockSize))
		p.segment = p.count > 1 && s.Conn.SetSegment(e.cfg.BlockSize) == nil
	}
	if !p.segment {
		p.count = 1
		if e.cfg.UDP.Offload == plan.OffloadOn && !e.noticed("offload-off") {
			e.notice("offload-off", result.Info, "segmentation offload was asked for and is not used: this system or this connection does not offer it")
		}
	}
	s.tx.setFull(p.count, 0)
	return p
}

// superDatagramsPortable is how many datagrams one write may be cut into (Linux, Windows).
const superDatagramsPortable = 64

func (p *udpPortable) sends() bool { return p.s.Send }
func (p *udpPortable) close()      {}

func (p *udpPortable) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
	e := p.s.e
	if p.s.Send && e.stopSend.Load() {
		p.s.Conn.Net().SetWriteDeadline(time.Unix(1, 0))
	}
	if !p.s.Send && e.stopRecv.Load() {
		p.s.Conn.Net().SetReadDeadline(time.Unix(1, 0))
	}
}

func (p *udpPortable) run() {
	s, e := p.s, p.s.e
	if len(e.cfg.Affinity) > 0 {
		defer e.pin(p.i, false)()
	}
	if !s.Send {
		p.buf = make([]byte, e.receiveSize(p.joined))
		p.receive()
		s.leftReceiving()
		return
	}
	p.timer = time.NewTimer(time.Hour)
	defer p.timer.Stop()
	p.buf = make([]byte, p.count*e.cfg.BlockSize)
	e.cfg.fill(p.buf[:e.cfg.BlockSize])
	for i := 1; i < p.count; i++ {
		copy(p.datagram(i), p.buf[:e.cfg.BlockSize])
	}
	s.follow(e.now())
	for !e.stopSend.Load() && p.sendOnce() {
	}
	s.release()
	s.ctr.stopped.Store(max(e.now(), 1))
}

func (p *udpPortable) datagram(i int) []byte {
	size := p.s.e.cfg.BlockSize
	return p.buf[i*size : (i+1)*size]
}

// sendOnce makes one write, or one pause, and reports whether there may be more.
func (p *udpPortable) sendOnce() bool {
	s, e := p.s, p.s.e
	now := e.now()
	n, wait := s.nextDatagrams(now, p.count)
	if n == 0 {
		if wait >= 0 {
			p.pause(now+wait, wait)
		}
		return wait >= 0
	}
	if !e.cfg.UDP.Bare {
		mono := e.monoAt(now)
		for i := range n {
			s.stamp(p.datagram(i), i, mono)
		}
	}
	s.calling(now)
	_, err := s.Conn.Net().Write(p.buf[:n*e.cfg.BlockSize])
	after := e.now()
	if err == nil {
		s.sentDatagrams(n, now, after)
		s.largestBurst(n)
		if int64(n) > max(1, s.tx.segment.Load()) {
			s.tx.segment.Store(int64(n))
		}
		return true
	}
	return p.refused(err, n, after-now)
}

// pause waits ns, until at, or until a kick. A precise sender keeps the CPU.
func (p *udpPortable) pause(at, ns int64) {
	e := p.s.e
	if e.cfg.UDP.Pacing == plan.PacingPrecise && ns < 2*preciseSpin {
		for e.now() < at && !e.stopSend.Load() && e.rate.Load() == p.s.rate {
		}
		return
	}
	if e.cfg.UDP.Pacing == plan.PacingPrecise {
		ns -= preciseSpin
	}
	p.timer.Reset(time.Duration(ns))
	select {
	case <-p.timer.C:
	case <-p.wake:
		p.timer.Stop()
	}
}

// refused deals with a write of n datagrams that failed after took ns.
func (p *udpPortable) refused(err error, n int, took int64) bool {
	s := p.s
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return true
	case !errors.As(err, &errno):
		s.end(fmt.Errorf("traffic: send: %w", err))
		return false
	}
	switch sortRefusal(posix(errno)) {
	case sendAgain:
		s.tx.blocked.Add(took)
		return true
	case sendRefused:
		s.refusedDatagrams(n, posix(errno), s.e.now())
		if s.rate == 0 {
			p.pause(s.e.now()+retryPause, retryPause)
		}
		return true
	case sendICMP:
		if err := s.answeredByICMP(1); err != nil {
			s.end(err)
			return false
		}
		return true
	case sendTooLong:
		if n > 1 { // the system does not cut after all
			p.whole()
			return true
		}
		s.end(s.tooLong())
		return false
	}
	if n > 1 {
		p.whole()
		return true
	}
	s.end(fmt.Errorf("traffic: send: %w", err))
	return false
}

// whole goes on without segmentation.
func (p *udpPortable) whole() {
	_ = p.s.Conn.SetSegment(0)
	p.segment, p.count = false, 1
	p.s.tx.setFull(1, p.s.e.now())
	p.s.e.u.later(result.Notice{
		Code: "offload-off", End: p.s.e.cfg.End, Level: result.Info,
		Text: "segmentation offload is not used: the system refused it on the way to the peer",
	})
}

func (p *udpPortable) receive() {
	s, e := p.s, p.s.e
	for {
		state := e.listens(s.rx.quiet, e.now())
		switch {
		case state == heard:
			return
		case state == silent:
			p.s.Conn.Net().SetReadDeadline(time.Now().Add(lastRead))
		case e.stopRecv.Load():
			p.s.Conn.Net().SetReadDeadline(time.Now().Add(tailRead))
		}
		if s.calls != nil {
			s.calls.begin(e.now())
		}
		n, segment, stamp, err := s.Conn.ReadDatagrams(p.buf)
		now := e.now()
		if err == nil {
			if stamp != 0 {
				s.rx.clock.refresh(e.u.base, now)
			}
			s.rx.mu.Lock()
			counted := s.arrived(p.buf[:n], segment, stamp, now)
			s.rx.mu.Unlock()
			if e.cfg.Message == Jitter {
				s.tookMessage(p.buf[:n], stamp, now)
			}
			ok := s.tookDatagrams(now)
			s.noteDatagrams(counted)
			if !ok {
				return
			}
		} else if !p.passes(err) {
			s.end(fmt.Errorf("traffic: receive: %w", err))
			return
		} else if state == silent && errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if now-p.beat >= beatPortable {
			p.beat = now
			e.police(now)
		}
	}
}

const (
	tailRead     = 20 * time.Millisecond
	lastRead     = time.Millisecond
	beatPortable = policeEvery
)

// passes reports errors after which a receiver goes on.
func (p *udpPortable) passes(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var errno syscall.Errno
	return errors.As(err, &errno) && sortRefusal(posix(errno)) != sendBroken
}
