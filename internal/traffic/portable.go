package traffic

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

// portable moves one flow with a goroutine over its net.Conn. It works on every
// system and connection, serves files everywhere, and is what the faster workers are
// measured against.
type portable struct {
	s    *stream
	i    int // number among the portable workers
	buf  []byte
	wake chan struct{} // a kick; capacity 1
	// timer ends a pause; made by run so that tests may run it in virtual time.
	timer *time.Timer
}

func newPortable(s *stream, i int) *portable {
	return &portable{s: s, i: i, wake: make(chan struct{}, 1)}
}

func (p *portable) sends() bool { return p.s.Send }
func (p *portable) close()      {}

func (p *portable) kick() {
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

func (p *portable) run() {
	s := p.s
	if len(s.e.cfg.Affinity) > 0 {
		defer s.e.pin(p.i, false)()
	}
	p.startTimer()
	defer p.timer.Stop()
	if s.Send {
		p.buf = make([]byte, s.e.cfg.BlockSize)
		s.e.cfg.fill(p.buf)
		p.send()
		s.release()
	} else {
		size := max(s.e.cfg.BlockSize, 128<<10)
		if s.e.cfg.CountCalls {
			size = s.e.cfg.BlockSize
		}
		p.buf = make([]byte, size)
		p.receive()
	}
	s.ctr.stopped.Store(max(s.e.now(), 1))
}

// fill makes payload of p: one byte over and over as NTTTCP, or as iperf3 random, or the
// digits (iperf_util.c, fill_with_repeating_pattern).
func (c *Config) fill(p []byte) {
	switch {
	case c.Fill != 0:
		for i := range p {
			p[i] = c.Fill
		}
		return
	case c.Repeating:
		for i := range p {
			p[i] = '0' + byte(i%10)
		}
		return
	}
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	rand.NewChaCha8(seed).Read(p)
}

func (p *portable) startTimer() { p.timer = time.NewTimer(time.Hour) }

// pause waits ns, or until a kick.
func (p *portable) pause(ns int64) {
	p.timer.Reset(time.Duration(ns))
	select {
	case <-p.timer.C:
	case <-p.wake:
		p.timer.Stop()
	}
}

func (p *portable) send() {
	s, e := p.s, p.s.e
	for !e.stopSend.Load() {
		n, wait := s.next(e.now())
		if n == 0 {
			if wait < 0 {
				return
			}
			p.pause(wait)
			continue
		}
		chunk := p.buf[:n]
		if e.cfg.Source != nil {
			m, err := s.fill(chunk)
			chunk = chunk[:m]
			if m == 0 && errors.Is(err, io.EOF) {
				s.fileEnd.Store(true)
				s.end(nil)
				return
			}
			if err != nil && !errors.Is(err, io.EOF) {
				s.end(fmt.Errorf("traffic: read source: %w", err))
				return
			}
		}
		if s.calls != nil {
			s.calls.begin(e.now())
		}
		if err := p.write(chunk); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			s.end(fmt.Errorf("traffic: send: %w", err))
			return
		}
	}
}

// write writes chunk; what it wrote is counted also with an error.
func (p *portable) write(chunk []byte) error {
	n, err := p.s.Conn.Net().Write(chunk)
	if n > 0 {
		p.s.wrote(n, p.s.e.now())
	}
	return err
}

func (p *portable) receive() {
	s, e := p.s, p.s.e
	for !e.stopRecv.Load() {
		want, wait := s.wants(len(p.buf), e.now())
		if want == 0 {
			p.pause(wait)
			continue
		}
		if !p.readOnce(want) {
			return
		}
	}
	if e.drain.Load() {
		p.drainSocket()
	}
}

// readOnce reads once and reports whether there may be more.
func (p *portable) readOnce(want int) bool {
	s := p.s
	if s.calls != nil {
		s.calls.begin(s.e.now())
	}
	n, err := s.Conn.Net().Read(p.buf[:want])
	if n > 0 {
		s.read(n, s.e.now())
		if !s.verified(p.buf[:n]) {
			return false
		}
		if s.e.cfg.Sink != nil {
			if werr := s.sink(p.buf[:n]); werr != nil {
				s.end(fmt.Errorf("traffic: write sink: %w", werr))
				return false
			}
		}
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return true
	case isEOF(err):
		s.end(io.EOF)
	default:
		s.end(fmt.Errorf("traffic: receive: %w", err))
	}
	return false
}

// drainSocket reads what the socket holds now, at most.
func (p *portable) drainSocket() {
	left, err := p.s.Conn.RecvQueue()
	if err != nil {
		left = 64 << 20
	}
	for left > 0 {
		p.s.Conn.Net().SetReadDeadline(time.Now().Add(drainRead))
		before := p.s.ctr.bytes.Load()
		if !p.readOnce(min(left, len(p.buf)-p.s.part)) {
			return
		}
		n := int(p.s.ctr.bytes.Load() - before)
		if n == 0 {
			return
		}
		left -= n
	}
}

// drainRead bounds one read of bytes that are there already.
const drainRead = 5 * time.Millisecond
