package osnet

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestPeerClosed: silence, data, the end after data, the end, a reset.
func TestPeerClosed(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	look := func(c *Conn, want bool, when string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			got, err := c.PeerClosed()
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: closed %v", when, got)
			}
		}
	}
	c, s := pair(t, ln, "127.0.0.1", Options{}, Options{})
	look(s, false, "at first")
	if _, err := c.Net().Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if n, err := s.RecvQueue(); err == nil && n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the byte does not come")
		}
	}
	if got, err := s.PeerClosed(); err != nil || got {
		t.Errorf("with a byte before the end: %v, %v", got, err)
	}
	if _, err := s.Net().Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	look(s, true, "at the end")

	c, s = pair(t, ln, "127.0.0.1", Options{}, Options{})
	_ = c.Net().(*net.TCPConn).SetLinger(0)
	c.Close()
	look(s, true, "after a reset")

	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := NewConn(a).PeerClosed(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a pipe: %v", err)
	}
}
