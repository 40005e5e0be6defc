package iperf3

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestControlTimeouts: next waits as long as bytes arrive, but not for ever.
func TestControlTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := newControl(a, true, MaxResults, nil, nil)
		defer c.close()
		defer b.Close()
		start := time.Now()
		if _, err := c.next(t.Context(), time.Second); !errors.Is(err, errTimeout) || time.Since(start) != time.Second {
			t.Errorf("silence: %v after %v", err, time.Since(start))
		}
		go func() { // a document, a byte every half second
			for _, x := range AppendDocument(nil, []byte(`{"a":1}`)) {
				time.Sleep(500 * time.Millisecond)
				b.Write([]byte{x})
			}
		}()
		m, err := c.next(t.Context(), time.Second)
		if err != nil || string(m.Doc) != `{"a":1}` {
			t.Errorf("slow: %q %v", m.Doc, err)
		}
		start = time.Now()
		gone := make(chan struct{})
		go func() { // one that never ends
			defer close(gone)
			for range 100 {
				time.Sleep(500 * time.Millisecond)
				if _, err := b.Write([]byte{0}); err != nil {
					return
				}
			}
		}()
		b.Write([]byte{0, 0, 1, 0})
		if _, err := c.next(t.Context(), time.Second); !errors.Is(err, errTimeout) || time.Since(start) != 10*time.Second {
			t.Errorf("a trickle: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(io.ErrNoProgress)
		if _, err := c.next(ctx, time.Second); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("ctx: %v", err)
		}
		b.Close()
		c.close()
		<-gone
	})
}

// TestControlPeerThatDoesNotRead: a frame that cannot be sent whole closes the
// connection, and the reader is told the true reason.
func TestControlPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		c := newControl(a, true, MaxResults, nil, nil)
		defer c.close()
		if err := c.sendFrame(AppendFrame(nil, FrameClient, []byte(`{}`)), time.Second); !isNetTimeout(err) {
			t.Errorf("send: %v", err)
		}
		if _, err := c.next(t.Context(), time.Hour); !errors.Is(err, errTimeout) {
			t.Errorf("next: %v", err)
		}
	})
}

// TestControlPeerThatIsHeard: a frame that is held up while the peer itself talks (our own load
// drops this connection's segments) waits for longer, and arrives whole.
func TestControlPeerThatIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		c := newControl(a, true, MaxResults, nil, nil)
		defer c.close()
		frame := AppendFrame(nil, FrameClient, []byte(`{"a":1}`))
		got := make(chan []byte, 1)
		go func() {
			for _, x := range AppendDocument(nil, []byte(`{"a":1}`))[:6] { // for three seconds
				time.Sleep(500 * time.Millisecond)
				b.Write([]byte{x})
			}
			buf := make([]byte, len(frame))
			io.ReadFull(b, buf)
			got <- buf
		}()
		if err := c.sendFrame(frame, time.Second); err != nil {
			t.Fatalf("send: %v", err)
		}
		if g := <-got; string(g) != string(frame) {
			t.Errorf("arrived: %q", g)
		}
	})
}

// TestBudget: large messages of all connections share a bounded room, and give it back.
func TestBudget(t *testing.T) {
	docs := newBudget(1 << 20)
	big := AppendDocument(nil, make([]byte, 900<<10))
	open := func() (*control, net.Conn) {
		a, b := net.Pipe()
		return newControl(a, false, MaxResults, docs, nil), b
	}
	c1, p1 := open()
	defer c1.close()
	go p1.Write(big[:800<<10])
	held := int64(800<<10 - freeDocument) // all of it, or the second could take what the first still needs
	eventually(t, "the first message takes no room", func() bool { return docs.left.Load() == 1<<20-held })
	c2, p2 := open()
	defer c2.close()
	go p2.Write(big)
	if i := <-c2.in; i.err == nil {
		t.Errorf("a second large message was taken: %d bytes", len(i.m.Doc))
	}
	p2.Close()
	<-c2.ended // its room is given back
	go p1.Write(big[800<<10:])
	if i := <-c1.in; i.err != nil || len(i.m.Doc) != 900<<10 {
		t.Errorf("the first: %d bytes, %v", len(i.m.Doc), i.err)
	}
	p1.Close()
	<-c1.in
	<-c1.ended
	if left := docs.left.Load(); left != 1<<20 {
		t.Errorf("%d bytes of room are left of %d", left, 1<<20)
	}
}

// TestLingerIsBounded: a peer that keeps talking, and one that says nothing, are left
// behind in time.
func TestLingerIsBounded(t *testing.T) {
	for _, talk := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			c := newControl(a, true, MaxResults, nil, nil)
			gone := make(chan struct{})
			if !talk {
				close(gone)
			} else {
				go func() {
					defer close(gone)
					for {
						if _, err := b.Write([]byte{1}); err != nil {
							return
						}
						time.Sleep(time.Millisecond)
					}
				}()
			}
			start := time.Now()
			c.linger(time.Second)
			if d := time.Since(start); d > time.Second {
				t.Errorf("talking %v: %v", talk, d)
			}
			b.Close()
			<-gone
		})
	}
}
