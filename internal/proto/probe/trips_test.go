package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// slowEcho answers after a time.
type slowEcho struct {
	net.Conn
	wait time.Duration
}

func (c slowEcho) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.wait)
	return n, err
}

func TestTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		base := time.Now()
		reports := 0
		trips, err := NewTrips(TripConfig{
			Profile: "p", Size: 100, Duration: 10*time.Second - time.Millisecond, Now: func() int64 { return int64(time.Since(base)) },
			Report: func(r *result.Probes) {
				if reports++; r.Histogram != nil || r.Answered == 0 {
					t.Errorf("report %+v", r)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		echoed := make(chan int64, 1)
		go func() {
			n, err := Echo(slowEcho{server, 2 * time.Millisecond}, 0)
			if err != nil {
				t.Error(err)
			}
			echoed <- n
		}()
		if err := trips.Run(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		r := trips.Result()
		if n := <-echoed; n != r.Answered || r.Sent != r.Answered || r.Answered < 4999 || r.Answered > 5000 {
			t.Errorf("%d echoed, %d sent, %d answered", n, r.Sent, r.Answered)
		}
		near(t, "round trip", r.RoundTrip.P50, 0.002, 2e-5)
		near(t, "rate", *r.Rate, 500, 1)
		if reports != 9 || len(r.Histogram) == 0 || r.Kind != "tcp-rr" || r.Size != 100 {
			t.Errorf("%d reports, %+v", reports, r)
		}
	})
}

// A budget ends the round trips before their time, and that is said.
func TestTripsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		base := time.Now()
		trips, err := NewTrips(TripConfig{Size: 100, Duration: time.Hour, Most: 2050, Now: func() int64 { return int64(time.Since(base)) }})
		if err != nil {
			t.Fatal(err)
		}
		var echo sync.WaitGroup
		echo.Go(func() { _, _ = Echo(slowEcho{server, 2 * time.Millisecond}, 0) }) // ends with client
		if err := trips.Run(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		echo.Wait()
		if r, n := trips.Result(), trips.Notices(); r.Answered != 10 || len(n) != 1 || n[0].Code != "budget-used" {
			t.Errorf("%d answered, %v", r.Answered, n)
		}
	})
}

// The server's own limit holds on what it sends back.
func TestEchoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		base := time.Now()
		trips, err := NewTrips(TripConfig{Size: 125, Duration: 10 * time.Second, Now: func() int64 { return int64(time.Since(base)) }})
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = Echo(server, 100e3) // 100 a second
		}()
		defer func() { <-gone }()
		if err := trips.Run(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		if n := trips.Result().Answered; n < 995 || n > 1002 {
			t.Errorf("%d answers in 10 s", n)
		}
	})
}

func TestTripsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		base := time.Now()
		trips, err := NewTrips(TripConfig{Size: 1, Now: func() int64 { return int64(time.Since(base)) }})
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = Echo(slowEcho{server, time.Millisecond}, 0)
		}()
		defer func() { <-gone }()
		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := trips.Run(ctx, client); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
		_ = client.Close()
		if n := trips.Result().Answered; n < 990 || n > 1000 {
			t.Errorf("%d answers", n)
		}
	})
}

// A server that sends something else back, or hangs up, is an error.
func TestTripsBroken(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"wrong": func(c net.Conn) {
			b := make([]byte, 4+64)
			_, _ = io.ReadFull(c, b)
			_, _ = c.Write(make([]byte, 64))
		},
		"closed": func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 4+64))
			_ = c.Close()
		},
		"silent": func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 4+64)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			base := time.Now()
			trips, err := NewTrips(TripConfig{Size: 64, Duration: time.Minute, Patience: time.Second, Now: func() int64 { return int64(time.Since(base)) }})
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				serve(server)
			}()
			defer func() { <-gone }()
			if err := trips.Run(t.Context(), client); err == nil {
				t.Errorf("%s: no error", name)
			}
			_ = client.Close()
			if r := trips.Result(); r.Answered != 0 || r.RoundTrip != nil || r.Rate != nil {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

func TestEchoEnds(t *testing.T) {
	for name, c := range map[string]struct {
		send []byte
		ok   bool
	}{
		"nothing":         {nil, true},
		"connect only":    {[]byte{0, 0, 0, 0}, true},
		"too long":        {binary.BigEndian.AppendUint32(nil, MaxMessage+1), false},
		"half a size":     {[]byte{0, 0}, false},
		"half a message":  {append(binary.BigEndian.AppendUint32(nil, 8), 1, 2), false},
		"between two":     {binary.BigEndian.AppendUint32(nil, 8), true},
		"talks after all": {[]byte{0, 0, 0, 0, 1}, true},
	} {
		client, server := net.Pipe()
		done := make(chan error, 1)
		go func() {
			n, err := Echo(server, 0)
			if n != 0 {
				t.Errorf("%s: %d answers", name, n)
			}
			_ = server.Close()
			done <- err
		}()
		_, _ = client.Write(c.send)
		_ = client.Close()
		if err := <-done; (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConnects(t *testing.T) {
	c := NewConnects()
	if c.Result("x") != nil {
		t.Error("figures of nothing")
	}
	for i := range 20 {
		c.Add(time.Duration(i+1) * time.Millisecond)
	}
	c.Fail()
	r := c.Result("x")
	if r.Kind != "tcp-connect" || r.Sent != 21 || r.Answered != 20 || r.Connect.N != 20 {
		t.Errorf("%+v", r)
	}
	near(t, "least", r.Connect.Min, 0.001, 1e-9)
	near(t, "most", r.Connect.Max, 0.020, 1e-9)
}

func TestNewTripsRefuses(t *testing.T) {
	for _, size := range []int{0, -1, MaxMessage + 1} {
		if _, err := NewTrips(TripConfig{Size: size}); err == nil {
			t.Errorf("size %d was accepted", size)
		}
	}
}
