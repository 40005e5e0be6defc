package recipes

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// PlayKilled runs both sides of r as the lines stand, kills that one as soon as a megabyte (of
// datagrams: some) has crossed the loopback device, and returns what the other leaves, which must
// end by itself.
func (r Recipe) PlayKilled(t testing.TB, space *Space, receiver, sender Tool, victim plan.NTTTCPRole) *End {
	t.Helper()
	recv := space.begin(t, plan.NTTTCPReceiver, receiver, r.Receiver)
	recv.ready(t, space, receiver.Original)
	send := space.begin(t, plan.NTTTCPSender, sender, r.Sender)
	for _, s := range []*side{recv, send} {
		s.until(t, "the test begins", func() bool {
			return strings.Contains(s.Stdout(), "Network activity progressing") || strings.Contains(s.Stdout(), "Real-time throughput: ")
		})
	}
	before := space.loopbackBytes(t)
	recv.until(t, "payload flows", func() bool { return space.loopbackBytes(t) > before+1<<20 })
	killed, left := send, recv
	if victim == plan.NTTTCPReceiver {
		killed, left = recv, send
	}
	if err := killed.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	return left.wait(t)
}

// loopbackBytes is how much the loopback device has received.
func (s *Space) loopbackBytes(t testing.TB) (n int64) {
	t.Helper()
	err := s.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		_, row, found := bytes.Cut(b, []byte(" lo:"))
		w := strings.Fields(string(row))
		if !found || len(w) == 0 {
			return fmt.Errorf("no device lo in %q", b)
		}
		n, err = strconv.ParseInt(w[0], 10, 64)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
