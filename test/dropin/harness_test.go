//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// The addresses of the recordings (goldens README), so that their command lines run
// unchanged.
const (
	near4, far4 = "192.0.2.1", "192.0.2.2"
	near6, far6 = "2001:db8::1", "2001:db8::2"
)

// The shapers of the recordings.
var (
	gigabit = lab.TBF{BitsPerSecond: 1_000_000_000, BurstBytes: 256 << 10, Latency: 50 * time.Millisecond}
	lossy   = lab.TBF{BitsPerSecond: 20_000_000, BurstBytes: 16 << 10, Latency: 5 * time.Millisecond}
)

// newWire makes the two ends of the recordings: client on the near one. The client's
// direction has the given shaper.
func newWire(up lab.TBF) (*lab.Network, error) {
	n, err := lab.NewPair("cubic") // the system's default may be BBR, which needs seconds to settle
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		n.Near.AddAddress(lab.PairNear, near4+"/24"), n.Far.AddAddress(lab.PairFar, far4+"/24"),
		n.Near.AddAddress(lab.PairNear, near6+"/64"), n.Far.AddAddress(lab.PairFar, far6+"/64"),
		n.Near.SetTBF(lab.PairNear, up), n.Far.SetTBF(lab.PairFar, gigabit),
	)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// bench is a pair of hosts with the program under test behaving as one release.
type bench struct {
	*testing.T
	net     *lab.Network
	release string
	dir     string // where both ends run
	began   map[*lab.Namespace]uint64
}

// needsRoot ends the test where no namespace can be made.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("CI runs as root: namespaces are needed")
	}
	t.Skip("needs root for network namespaces; make test runs as root in CI")
}

// newBench takes a pair from the pool.
func newBench(t *testing.T, release string) *bench {
	t.Helper()
	needsRoot(t)
	n, err := wires.get()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wires.put(n) })
	return benchOn(t, n, release)
}

// ownBench makes a pair for one test that changes it.
func ownBench(t *testing.T, release string, up lab.TBF) *bench {
	t.Helper()
	needsRoot(t)
	n, err := newWire(up)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return benchOn(t, n, release)
}

func benchOn(t *testing.T, n *lab.Network, release string) *bench {
	t.Helper()
	b := &bench{T: t, net: n, release: release, dir: t.TempDir(), began: map[*lab.Namespace]uint64{}}
	for _, ns := range []*lab.Namespace{n.Near, n.Far} {
		b.began[ns] = b.sent(ns)
	}
	return b
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// limit is when a step has hung: nothing here takes half as long.
const limit = time.Minute

// start starts the drop-in in a namespace. The environment would make a careless
// program print colours, other words and other times.
func (b *bench) start(ns *lab.Namespace, env []string, words ...string) *lab.Process {
	b.Helper()
	return b.startCmd(ns, lab.Command{Args: append([]string{program, "iperf3"}, words...), Env: env})
}

func (b *bench) startCmd(ns *lab.Namespace, c lab.Command) *lab.Process {
	b.Helper()
	compat := b.release
	if compat == "3.21" {
		compat = "" // the default
	}
	c.Env = append([]string{
		"FULLBORE_IPERF3_COMPAT=" + compat, "TZ=UTC", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de", "TERM=xterm-256color",
		"COLORTERM=truecolor", "FORCE_COLOR=1", "CLICOLOR_FORCE=1", "NO_COLOR=", "COLUMNS=40",
	}, c.Env...)
	c.Dir = b.dir
	p, err := ns.Start(c)
	b.check(err)
	b.Cleanup(func() {
		_ = p.Signal(syscall.SIGCONT)
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	return p
}

// serve starts a server on the far end and waits until it listens.
func (b *bench) serve(env []string, words ...string) *lab.Process {
	b.Helper()
	p := b.start(b.net.Far, env, words...)
	b.listens(p)
	return p
}

func (b *bench) listens(p *lab.Process) {
	b.Helper()
	b.until("the server listens", func() bool { return b.listening() || ended(p) })
	if ended(p) {
		b.Fatalf("the server ended: %s%s", p.Stdout(), p.Stderr())
	}
}

func (b *bench) listening() bool {
	b.Helper()
	ok, err := b.net.Far.Listening()
	b.check(err)
	return ok
}

// client runs a client on the near end to its end.
func (b *bench) client(env []string, words ...string) outcome {
	b.Helper()
	return b.wait(b.start(b.net.Near, env, words...))
}

// outcome is what a program left.
type outcome struct {
	exit           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", o.exit, o.stdout, o.stderr)
}

func (b *bench) wait(p *lab.Process) outcome {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		b.Fatalf("%v\nstdout: %s\nstderr: %s", err, p.Stdout(), p.Stderr())
	}
	return outcome{code, p.Stdout(), p.Stderr()}
}

func ended(p *lab.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// until polls a condition of another process.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	for deadline := time.Now().Add(limit); !ok(); {
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sent is what an end's device has sent since it was made, bytes.
func (b *bench) sent(ns *lab.Namespace) uint64 {
	b.Helper()
	dev := lab.PairNear
	if ns == b.net.Far {
		dev = lab.PairFar
	}
	st, err := ns.DeviceStats(dev)
	b.check(err)
	return st.TxBytes
}

// flowed waits until an end has sent so many bytes in this test, or p has ended. That
// is how a moment of the recordings is met: 1.6 s at 50 Mbit/s are 10 MB.
func (b *bench) flowed(p *lab.Process, ns *lab.Namespace, bytes uint64) {
	b.Helper()
	b.until("the data flows", func() bool { return b.sent(ns)-b.began[ns] >= bytes || ended(p) })
	if ended(p) {
		b.Fatalf("ended before its time: %s%s", p.Stdout(), p.Stderr())
	}
}

// signal sends a signal to a process that runs.
func (b *bench) signal(p *lab.Process, s os.Signal) {
	b.Helper()
	b.check(p.Signal(s))
}

// dial connects from the near end to the server.
func (b *bench) dial() net.Conn {
	b.Helper()
	var c net.Conn
	b.check(b.net.Near.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", net.JoinHostPort(far4, "5201"), 10*time.Second)
		return err
	}))
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// says checks that a text has all the words.
func (b *bench) says(text string, words ...string) {
	b.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.Errorf("does not say %q: %q", w, text)
		}
	}
}
