package connrate

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen answers each greeting of 3 bytes with what answer gives, until the test ends.
func listen(t *testing.T, answer byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
			var b [3]byte
			if _, err := io.ReadFull(nc, b[:]); err == nil {
				_, _ = nc.Write([]byte{answer})
			}
			nc.Close()
		}
	}()
	return l.Addr().String()
}

func abc() []byte { return []byte("abc") }

func TestRun(t *testing.T) {
	addr := listen(t, 9)
	s := Run(context.Background(), Options{Network: "tcp", Address: addr, Rate: 200, Length: 100 * time.Millisecond, Timeout: 20 * time.Second})
	if s.Tried == 0 || s.Opened != s.Tried || len(s.Failed) != 0 || s.Connect == nil || s.Connect.N != s.Opened || s.Rate <= 0 {
		t.Errorf("%+v", s)
	}
	s = Run(context.Background(), Options{Network: "tcp", Address: addr, Rate: 100, Length: 100 * time.Millisecond, Timeout: 20 * time.Second, Exchange: true, Greeting: abc, Denied: 255, Abort: true})
	if s.Tried == 0 || s.Opened != s.Tried {
		t.Errorf("with an exchange: %+v", s)
	}
}

func TestRunDenied(t *testing.T) {
	addr := listen(t, 255)
	s := Run(context.Background(), Options{Network: "tcp", Address: addr, Rate: 100, Length: 50 * time.Millisecond, Timeout: 20 * time.Second, Exchange: true, Greeting: abc, Denied: 255})
	if s.Opened != 0 || len(s.Failed) != 1 || s.Failed[0].Code != Busy || s.Failed[0].Count != s.Tried {
		t.Errorf("%+v", s)
	}
}

func TestRunRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := Run(context.Background(), Options{Network: "tcp", Address: addr, Rate: 100, Length: 50 * time.Millisecond, Timeout: 20 * time.Second})
	if s.Opened != 0 || len(s.Failed) != 1 || s.Failed[0].Code != Refused || s.Connect != nil {
		t.Errorf("%+v", s)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s := Run(ctx, Options{Network: "tcp", Address: "127.0.0.1:9", Rate: 1000, Length: time.Hour}); s.Tried != 0 {
		t.Errorf("%+v", s)
	}
}

func TestFaultOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, NoAnswer},
		{os.ErrDeadlineExceeded, NoAnswer},
		{fmt.Errorf("dial: %w", connRefused[0]), Refused},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", connReset[0])}, Reset},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", noPorts[0])}, LocalPorts},
		{os.NewSyscallError("socket", noFiles[0]), LocalFiles},
		{timedOut[0], NoAnswer},
		{syscall.Errno(1), Other},
	} {
		if got := faultOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// A step begins all its connections, at their times: what a late timer holds up is made up for, and the time
// that a step took is at least what its rate asks for.
func TestRunBeginsAll(t *testing.T) {
	addr := listen(t, 9)
	for _, c := range []struct {
		rate   float64
		length time.Duration
		want   int64
	}{
		{20, 200 * time.Millisecond, 4},
		{5, 100 * time.Millisecond, 1},
		{14, 100 * time.Millisecond, 2},
		{2000, 50 * time.Millisecond, 100},
	} {
		s := Run(context.Background(), Options{Network: "tcp", Address: addr, Rate: c.rate, Length: c.length, Timeout: 20 * time.Second})
		least := float64(c.want) / c.rate
		if s.Tried < 1 || s.Tried > c.want || s.Seconds < least-1e-9 || s.Tried < c.want && s.Seconds < overdue*least-1e-9 {
			t.Errorf("%v a second for %v: %d begun in %v s, want %d in %v", c.rate, c.length, s.Tried, s.Seconds, c.want, least)
		}
		if s.Opened != s.Tried || s.Rate > c.rate*(1+1e-6) {
			t.Errorf("%d of %d opened, %v a second of %v", s.Opened, s.Tried, s.Rate, c.rate)
		}
	}
}
