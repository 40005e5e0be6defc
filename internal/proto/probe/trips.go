package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/result"
)

// MaxMessage is the longest request over TCP, bytes.
const MaxMessage = 1 << 16

// Echo serves the other end of a request-and-response connection: it reads the 4-byte
// size of the messages and sends each of them back, until the peer ends. Size 0 is a
// connection that was only opened to see how long that takes. bps bounds what is sent
// back, bit/s of payload; 0 = unbounded. It returns how many messages were answered, and
// an error other than the peer's ending. The caller closes c, which ends it.
func Echo(c net.Conn, bps int64) (n int64, err error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, ended(err)
	}
	size := binary.BigEndian.Uint32(head[:])
	switch {
	case size == 0:
		_, err := io.CopyN(io.Discard, c, 1) // the peer closes first: the port's wait is its
		return 0, ended(err)
	case size > MaxMessage:
		return 0, fmt.Errorf("probe: messages of %d bytes, at most %d are echoed", size, MaxMessage)
	}
	b := make([]byte, size)
	due := time.Now()
	for ; ; n++ {
		if _, err := io.ReadFull(c, b); err != nil {
			return n, ended(err)
		}
		if bps > 0 {
			time.Sleep(time.Until(due))
			due = later(time.Now(), due).Add(time.Duration(float64(size) * 8 / float64(bps) * 1e9))
		}
		if _, err := c.Write(b); err != nil {
			return n, ended(err)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ended is nil for the ways in which a peer leaves between two messages.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// TripConfig is what RoundTrips needs. Size and Now must be set.
type TripConfig struct {
	Profile  string
	Size     int           // of a message, 1 … MaxMessage bytes
	Spacing  time.Duration // between requests; 0 = each follows the answer to the one before
	Duration time.Duration // 0 = until ctx ends
	Most     int64         // payload of requests and answers, bytes, that ends them, too; 0 = none does
	Now      func() int64  // monotonic clock, ns
	Patience time.Duration // how long to wait for one answer; default 10 s
	Report   func(*result.Probes)
}

// Trips are the round trips over one TCP connection.
type Trips struct {
	c       TripConfig
	mu      sync.Mutex
	hist    delay.Histogram
	sent, n int64
	began   int64
	last    int64
	spent   bool // Most ended it
}

// NewTrips checks c.
func NewTrips(c TripConfig) (*Trips, error) {
	if c.Size < 1 || c.Size > MaxMessage {
		return nil, fmt.Errorf("probe: messages of %d bytes: 1 … %d are possible", c.Size, MaxMessage)
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	return &Trips{c: c}, nil
}

// Run sends one message after the other over conn, each when the one before was answered
// (and its time has come), until Duration is over or ctx ends. It does not close conn.
// The error is ctx's cause or the connection's.
func (t *Trips) Run(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	head := binary.BigEndian.AppendUint32(nil, uint32(t.c.Size))
	if _, err := conn.Write(head); err != nil {
		return t.broke(ctx, err)
	}
	request, answer := make([]byte, t.c.Size), make([]byte, t.c.Size)
	for i := range request {
		request[i] = byte(i)
	}
	t.mu.Lock()
	t.began = t.c.Now()
	t.last = t.began
	t.mu.Unlock()
	next := t.began + int64(reportEvery)
	for k := int64(0); ; k++ {
		now := t.c.Now()
		if t.c.Duration > 0 && now-t.began >= int64(t.c.Duration) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if t.c.Most > 0 && 2*(k+1)*int64(t.c.Size) > t.c.Most {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.spent = true
			return nil
		}
		if now >= next {
			next += max(1, (now-next)/int64(reportEvery)) * int64(reportEvery)
			if t.c.Report != nil {
				t.c.Report(t.soFar())
			}
		}
		if wait := t.began + k*int64(t.c.Spacing) - now; t.c.Spacing > 0 && wait > 0 {
			if !pause.For(ctx, time.Duration(wait)) {
				return context.Cause(ctx)
			}
		}
		if err := t.one(conn, request, answer, k); err != nil {
			return t.broke(ctx, err)
		}
	}
}

// one is request number k and its answer.
func (t *Trips) one(conn net.Conn, request, answer []byte, k int64) error {
	if k%deadlineEvery == 0 || t.c.Spacing > 0 { // setting it each time costs a microsecond
		_ = conn.SetDeadline(time.Now().Add(2 * t.c.Patience))
	}
	if t.c.Size >= 8 {
		binary.BigEndian.PutUint64(request, uint64(k))
	} else {
		request[0] = byte(k)
	}
	t.mu.Lock()
	t.sent++
	t.mu.Unlock()
	before := t.c.Now()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	after := t.c.Now()
	if !bytes.Equal(request, answer) {
		return errors.New("the other end sent back something else than it was sent")
	}
	t.mu.Lock()
	t.n++
	t.last = after
	t.hist.Add(after - before)
	t.mu.Unlock()
	return nil
}

// deadlineEvery is how many requests share a deadline.
const deadlineEvery = 64

// broke words err; ctx's cause comes first.
func (t *Trips) broke(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("request and response: %w", err)
}

// Notices say what is to be known beside the figures.
func (t *Trips) Notices() []result.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.spent {
		return nil
	}
	return []result.Notice{budgetUsed(t.c.Most)}
}

// Result returns the figures, with their histogram.
func (t *Trips) Result() *result.Probes {
	out := t.soFar()
	t.mu.Lock()
	defer t.mu.Unlock()
	out.Histogram = t.hist.Buckets()
	return out
}

func (t *Trips) soFar() *result.Probes {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := &result.Probes{
		Kind: "tcp-rr", Profile: t.c.Profile, Spacing: t.c.Spacing.Seconds(), Size: t.c.Size,
		Sent: t.sent, Answered: t.n, RoundTrip: t.hist.Quantiles(), Stamps: "user",
	}
	if d := t.last - t.began; d > 0 && t.n > 0 && t.c.Spacing == 0 {
		rate := float64(t.n) / (float64(d) / 1e9)
		out.Rate = &rate
	}
	return out
}

// Connects are the times of TCP handshakes, in the order of their making.
type Connects struct {
	mu     sync.Mutex
	hist   delay.Histogram
	sent   int64
	failed int64
}

// NewConnects returns none.
func NewConnects() *Connects { return &Connects{} }

// Add notes one that took d. It may be called by several goroutines.
func (c *Connects) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	c.hist.Add(int64(d))
}

// Fail notes one that did not come about.
func (c *Connects) Fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	c.failed++
}

// Result returns the figures; nil when there is none.
func (c *Connects) Result(profile string) *result.Probes {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == 0 {
		return nil
	}
	return &result.Probes{
		Kind: "tcp-connect", Profile: profile, Sent: c.sent, Answered: c.sent - c.failed, Connect: c.hist.Quantiles(), Stamps: "user",
	}
}
