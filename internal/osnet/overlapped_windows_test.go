package osnet

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

// connected is a connection over loopback, until the test ends.
func connected(t *testing.T) (client, server *Conn) {
	t.Helper()
	return pair(t, mustListen(t, "127.0.0.1:0", Options{}), "127.0.0.1", Options{}, Options{})
}

func overlap(t *testing.T, c *Conn, send bool, depth, size int, alike bool, fill func([]byte)) *Overlapped {
	t.Helper()
	o, err := NewOverlapped(c, send, depth, size, alike, fill)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// next waits for the end of a call.
func next(t *testing.T, o *Overlapped) (int, []byte) {
	t.Helper()
	for {
		n, data, err := o.Wait(int64(20 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return n, data
	}
}

// What many sends under way at once carry comes in their order, in many receives; then the end.
func TestOverlappedOrder(t *testing.T) {
	a, b := connected(t)
	const depth, size, count = 5, 10_000, 200
	letter := byte('a')
	tx := overlap(t, a, true, depth, size, false, func(p []byte) { // a letter for each buffer
		copy(p, bytes.Repeat([]byte{letter}, len(p)))
		letter++
	})
	rx := overlap(t, b, false, 6, 7_000, false, nil)
	sent, got, begun := 0, 0, 0
	for got < count*size {
		for begun < count && tx.Pending() < depth {
			if err := tx.Begin(size); err != nil {
				t.Fatal(err)
			}
			begun++
		}
		for rx.Pending() < 6 {
			if err := rx.Begin(7_000); err != nil {
				t.Fatal(err)
			}
		}
		_, data := next(t, rx)
		for _, c := range data {
			if want := byte('a' + got/size%depth); c != want {
				t.Fatalf("byte %d is %q, want %q", got, c, want)
			}
			got++
		}
		for tx.Pending() > 0 {
			n, _, err := tx.Wait(0)
			if errors.Is(err, ErrWoken) {
				break
			}
			if err != nil || n != size {
				t.Fatalf("a send of %d bytes, %v", n, err)
			}
			sent += n
		}
	}
	for tx.Pending() > 0 {
		n, _ := next(t, tx)
		sent += n
	}
	if sent != count*size || got != sent {
		t.Errorf("%d bytes sent, %d received", sent, got)
	}
	tx.Close()
	_ = a.Close()
	for rx.Pending() > 0 {
		if n, _ := next(t, rx); n != 0 {
			t.Errorf("%d bytes after the end", n)
		}
	}
}

// Wake ends a wait; Cancel ends calls, after which the connection is the runtime's again.
func TestOverlappedEnds(t *testing.T) {
	a, b := connected(t)
	rx := overlap(t, b, false, 3, 100, true, nil)
	for range 3 {
		if err := rx.Begin(100); err != nil {
			t.Fatal(err)
		}
	}
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		rx.Wake()
	}()
	if _, _, err := rx.Wait(-1); !errors.Is(err, ErrWoken) || rx.Pending() != 3 {
		t.Fatalf("%v, %d under way", err, rx.Pending())
	}
	<-woken
	if _, err := a.Net().Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if n, data := next(t, rx); n != 5 || string(data) != "first" {
		t.Errorf("%q", data)
	}
	rx.Cancel()
	for rx.Pending() > 0 {
		if n, _, err := rx.Wait(int64(20 * time.Second)); n != 0 || !IsCancelled(err) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	rx.Close()
	if _, err := a.Net().Write([]byte("second")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 6)
	if _, err := io.ReadFull(b.Net(), buf); err != nil || string(buf) != "second" {
		t.Errorf("%q, %v", buf, err)
	}
	if _, err := NewOverlapped(a, true, MaxOverlapped+1, 1, true, nil); err == nil {
		t.Error("more calls than Windows waits for were accepted")
	}
}

// A sender whose peer does not read has calls that do not end, until it is closed.
func TestOverlappedFull(t *testing.T) {
	a, _ := connected(t)
	tx := overlap(t, a, true, 4, 1<<20, true, nil)
	for full := false; !full; {
		for tx.Pending() < 4 {
			if err := tx.Begin(1 << 20); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := tx.Wait(int64(300 * time.Millisecond))
		if full = errors.Is(err, ErrWoken); err != nil && !full {
			t.Fatal(err)
		}
	}
	tx.Close()
}
