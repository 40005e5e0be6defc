package forward

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// TestMain is also the link process that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "link" {
		if err := Main(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// device is a stand-in for a TUN device that needs no privileges: a pair of datagram
// sockets. The loop has one end, the test, as the kernel's stack would, the other.
type device struct{ loop, stack int }

func newDevice(t testing.TB) device {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := device{p[0], p[1]}
	t.Cleanup(func() { unix.Close(d.loop); unix.Close(d.stack) })
	// A test must not wait for ever for a packet that never comes.
	if err := unix.SetNonblock(d.stack, false); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(d.stack, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d device) send(t *testing.T, p []byte) {
	t.Helper()
	if err := d.write(p); err != nil {
		t.Fatal(err)
	}
}

// write is the system call, repeated when the runtime's signals interrupt it.
func (d device) write(p []byte) error {
	_, err := unix.Write(d.stack, p)
	for err == unix.EINTR {
		_, err = unix.Write(d.stack, p)
	}
	return err
}

func (d device) receive(t *testing.T) []byte {
	t.Helper()
	p := make([]byte, 65536)
	n, err := d.read(p)
	if err != nil {
		t.Fatalf("no packet: %v", err)
	}
	return p[:n]
}

// read is the system call, repeated when the runtime's signals interrupt it.
func (d device) read(p []byte) (n int, err error) {
	for n, err = unix.Read(d.stack, p); err == unix.EINTR; {
		n, err = unix.Read(d.stack, p)
	}
	return n, err
}

// running is a loop within the test process.
type running struct {
	*loop
	ended chan error
}

func startLoop(t *testing.T, cfg Config, a, b device) running {
	t.Helper()
	l, err := newLoop(cfg, a.loop, b.loop, [2]*tap{})
	if err != nil {
		t.Fatal(err)
	}
	r := running{l, make(chan error, 1)}
	go func() { r.ended <- l.run() }()
	t.Cleanup(func() {
		l.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		unix.Close(l.wake)
		unix.Close(l.doze)
	})
	return r
}

func (r running) report(t *testing.T) *Report {
	t.Helper()
	z, err := r.ask(r.ended)
	if err != nil {
		t.Fatal(err)
	}
	return z.report()
}

// until polls the report until it holds; the test's own time limit is the only one.
func (r running) until(t *testing.T, holds func(*Report) bool) *Report {
	t.Helper()
	for {
		if rep := r.report(t); holds(rep) {
			return rep
		}
		runtime.Gosched()
	}
}

// TestCarries: both directions at once, every packet whole and in order, none early,
// and the books balance.
func TestCarries(t *testing.T) {
	const packets = 2000
	a, b := newDevice(t), newDevice(t)
	cfg := Config{MTU: 1500, Links: [2]link.Config{
		{Delay: 3 * time.Millisecond, BitsPerSecond: 400_000_000},
		{Delay: 5 * time.Millisecond},
	}}
	r := startLoop(t, cfg, a, b)

	done := make(chan [2]string)
	run := func(dir int, from, to device) string {
		feed := make(chan struct{}, 64) // a datagram socket holds few packets
		go func() {
			p := make([]byte, 1500)
			for i := range packets {
				feed <- struct{}{}
				binary.BigEndian.PutUint32(p, uint32(i))
				binary.BigEndian.PutUint64(p[8:], uint64(r.clock.now()))
				if err := from.write(p[:100+i%1401]); err != nil {
					return // the receiver's time limit reports it
				}
			}
		}()
		buf := make([]byte, 2000)
		for i := range packets {
			n, err := to.read(buf)
			now := r.clock.now()
			if err != nil {
				return fmt.Sprintf("packet %d: %v", i, err)
			}
			<-feed
			if got := binary.BigEndian.Uint32(buf); int(got) != i || n != 100+i%1401 {
				return fmt.Sprintf("packet %d: got number %d with %d bytes", i, got, n)
			}
			took := now - time.Duration(binary.BigEndian.Uint64(buf[8:]))
			if least := cfg.Links[dir].Delay; took < least {
				return fmt.Sprintf("packet %d took %v, less than the path's %v", i, took, least)
			}
		}
		return ""
	}
	go func() {
		up := make(chan string)
		go func() { up <- run(0, a, b) }()
		down := run(1, b, a)
		done <- [2]string{<-up, down}
	}()
	if got := <-done; got != [2]string{} {
		t.Fatal(got)
	}
	rep := r.until(t, func(rep *Report) bool {
		return rep.Directions[0].Out.Packets == packets && rep.Directions[1].Out.Packets == packets
	})
	var bytes int64
	for i := range packets {
		bytes += int64(100 + i%1401)
	}
	want := link.Count{Packets: packets, Bytes: bytes}
	for i, d := range rep.Directions {
		if d.Out != want || d.Link.In != want || d.Link.Delivered != want || d.Held != (link.Count{}) || len(d.Failed) != 0 {
			t.Errorf("direction %d: %+v, want %+v in and out", i, d, want)
		}
		if d.Late.Packets != packets || d.Late.P50 > d.Late.P99 || d.Late.P99 > d.Late.Max {
			t.Errorf("direction %d: lateness %+v", i, d.Late)
		}
	}
	if rep.Start <= 0 || rep.Now < rep.Start+3*time.Millisecond || rep.CPU <= 0 {
		t.Errorf("report from %v to %v, CPU %v", rep.Start, rep.Now, rep.CPU)
	}
}

// TestAskedDrops: what the schedule drops does not arrive and is counted as asked.
func TestAskedDrops(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	r := startLoop(t, Config{MTU: 1500, Links: [2]link.Config{
		{BitsPerSecond: 1000, QueuePackets: 1}, // 12 s for a packet of 1500 bytes
		{Loss: 1},
	}}, a, b)
	p := make([]byte, 1500)
	for range 4 {
		a.send(t, p)
		b.send(t, p)
	}
	rep := r.until(t, func(rep *Report) bool {
		return rep.Directions[0].Link.In.Packets == 4 && rep.Directions[1].Link.In.Packets == 4
	})
	up, down := rep.Directions[0], rep.Directions[1]
	if up.Link.Queue.Packets != 2 || up.Held.Packets != 2 || up.Out.Packets != 0 {
		t.Errorf("up: %+v, want 2 held and 2 dropped by the queue", up)
	}
	if down.Link.Loss.Packets != 4 || down.Held.Packets != 0 || down.Out.Packets != 0 {
		t.Errorf("down: %+v, want all 4 lost", down)
	}
}

// TestUnaskedDrops: a far device that refuses a packet is reported by the error's name.
func TestUnaskedDrops(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	if err := unix.Shutdown(b.stack, unix.SHUT_RD); err != nil {
		t.Fatal(err)
	}
	r := startLoop(t, Config{MTU: 1500}, a, b)
	a.send(t, make([]byte, 100))
	a.send(t, make([]byte, 100))
	rep := r.until(t, func(rep *Report) bool { return rep.Directions[0].Late.Packets == 2 })
	d := rep.Directions[0]
	if diff := cmp.Diff(map[string]int64{"EPIPE": 2}, d.Failed); diff != "" || d.Out.Packets != 0 || d.Held.Packets != 0 {
		t.Errorf("failed (-want +got):\n%s; direction %+v", diff, d)
	}
}

// TestTruth: the loop hands what leaves to the tracker, with the time of leaving.
func TestTruth(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	r := startLoop(t, Config{MTU: 1500, Truth: true, Links: [2]link.Config{{Delay: 2 * time.Millisecond}}}, a, b)
	segment := func(seq uint32, flags byte, payload int) []byte {
		p := make([]byte, 40+payload)
		p[0], p[9] = 0x45, 6
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		copy(p[12:], []byte{10, 77, 0, 1, 10, 77, 0, 2})
		binary.BigEndian.PutUint32(p[24:], seq)
		p[32], p[33] = 5<<4, flags
		return p
	}
	t0 := r.clock.now()
	a.send(t, segment(9, 2, 0))
	a.send(t, segment(10, 16, 1000))
	a.send(t, segment(10, 16, 1000))
	for range 3 {
		b.receive(t)
	}
	t1 := r.clock.now()
	rep := r.report(t)
	d := &rep.Directions[0]
	if len(d.Flows) != 1 || d.Flows[0].Bytes != 1000 || d.Flows[0].Repeated != 1000 || d.Untracked != 0 {
		t.Fatalf("flows %+v, want one of 1000 bytes and as many repeated", d.Flows)
	}
	if first := d.Flows[0].First; first < t0+2*time.Millisecond || first > t1 {
		t.Errorf("first byte left at %v, want between %v and %v", first, t0+2*time.Millisecond, t1)
	}
	if got := d.Between(t0, t1+time.Second); got != 1000 {
		t.Errorf("Between = %v, want 1000", got)
	}
	if got := d.InOrderBetween(0, t0+2*time.Millisecond-time.Millisecond); got != 0 {
		t.Errorf("before it left: %v, want 0", got)
	}
}

// TestCollection: a garbage collection ends although the loop's system calls go past
// the scheduler, both while it is idle and while it is busy.
func TestCollection(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			a, b := newDevice(t), newDevice(t)
			r := startLoop(t, Config{MTU: 1500, Links: [2]link.Config{{Delay: 100 * time.Microsecond}}}, a, b)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				p, buf := make([]byte, 1500), make([]byte, 2000)
				for busy {
					select {
					case <-stop:
						return
					default:
					}
					if err := a.write(p); err != nil {
						t.Error(err)
						return
					}
					if _, err := b.read(buf); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			for range 20 {
				runtime.GC() // the test's time limit is the failure
			}
			close(stop)
			<-stopped
			r.report(t)
		})
	}
}

// TestNoAllocation: carrying packets allocates nothing once the buffers exist, as
// the process runs without a collector.
func TestNoAllocation(t *testing.T) {
	a, b := newDevice(t), newDevice(t)
	l, err := newLoop(Config{MTU: 1500, Truth: true, Links: [2]link.Config{{Delay: time.Microsecond}}}, a.loop, b.loop, [2]*tap{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l.wake)
	defer unix.Close(l.doze)
	p, buf := make([]byte, 1500), make([]byte, 2000)
	fds := make([]unix.PollFd, 3)
	fds[0] = unix.PollFd{Fd: int32(a.loop), Events: unix.POLLIN}
	d := l.dirs[0]
	if got := testing.AllocsPerRun(2000, func() {
		if err := a.write(p); err != nil {
			t.Fatal(err)
		}
		if err := d.pull(&l.clock); err != nil {
			t.Fatal(err)
		}
		nap(l.nextDue())
		if err := l.wait(fds, 0, true); err != nil {
			t.Fatal(err)
		}
		d.push(&l.clock)
		if _, err := b.read(buf); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations a packet", got)
	}
}

// TestClock: the loop's clock is CLOCK_MONOTONIC.
func TestClock(t *testing.T) {
	c, err := newClock()
	if err != nil {
		t.Fatal(err)
	}
	raw := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	// Bracketed by two readings; half the bracket in which the constant was found is the
	// possible error, which 50 µs cover on any machine that is not swapping.
	before := raw()
	got := c.now()
	if after := raw(); got < before-50*time.Microsecond || got > after+50*time.Microsecond {
		t.Errorf("clock shows %v, want between %v and %v", got, before, after)
	}
}

// file duplicates a descriptor into an os.File, as Start takes.
func file(t *testing.T, fd int) *os.File {
	t.Helper()
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(dup), "device")
	t.Cleanup(func() { f.Close() })
	return f
}

// TestProcess drives the process as the lab does.
func TestProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, b := newDevice(t), newDevice(t)
	cfg := Config{MTU: 9000, Links: [2]link.Config{{Delay: time.Millisecond}, {Delay: time.Millisecond}}}
	p, err := Start([]string{exe, "link"}, End{Device: file(t, a.loop)}, End{Device: file(t, b.loop)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.send(t, bytes.Repeat([]byte{7}, 8999))
		if got := b.receive(t); len(got) != 8999 || got[8998] != 7 {
			t.Fatalf("received %d bytes", len(got))
		}
	}
	b.send(t, []byte{1})
	a.receive(t)
	for range 2 { // a report does not end it
		rep, err := p.Report()
		if err != nil {
			t.Fatal(err)
		}
		if got := rep.Directions[0].Link.In.Packets; got != 3 {
			t.Errorf("%d packets up, want 3", got)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := p.Report(); err == nil {
		t.Error("a stopped process reports")
	}
}

func TestStartFails(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, b := newDevice(t), newDevice(t)
	tests := []struct {
		name string
		argv []string
		cfg  Config
		want string
	}{
		{"bad configuration", []string{exe, "link"}, Config{MTU: 100, Links: [2]link.Config{{Loss: 2}}}, "forward: mtu 100 is outside 1280..65535\nforward: link 0: link: loss 2 is outside 0..1"},
		{"no such program", []string{"/nonexistent/fullbore"}, Config{MTU: 1500}, "no such file"},
		{"not a link process", []string{"/bin/true"}, Config{MTU: 1500}, "forward: start"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(tt.argv, End{Device: file(t, a.loop)}, End{Device: file(t, b.loop)}, tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	// What the process itself refuses comes back as its own words.
	for name, in := range map[string]string{
		"nothing": "", "garbage": "x\n", "a bad value": `{"mtu":1}` + "\n", "a bad descriptor": `{"mtu":1500}` + "\n",
	} {
		var out bytes.Buffer
		if err := serve(strings.NewReader(in), &out, -1, -1, [2]int{-1, -1}); err == nil || !strings.Contains(out.String(), `"error":"forward: `) {
			t.Errorf("%s: err %v, answer %q", name, err, out.String())
		}
	}
}
