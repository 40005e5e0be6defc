//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

const ntttcpFamily = "ntttcp-linux"

// ntttcpCase is one recorded run: what each role was given, and how it ended.
type ntttcpCase struct {
	name  string
	roles map[string]*ntttcpCommand
}

type ntttcpCommand struct {
	words []string
	exit  int
}

var ntttcpRow = regexp.MustCompile("(?m)^\\| (\\S+) \\| (\\S+) \\| `ntttcp ([^`]*)` \\| (?:signal )?(\\d+) \\|$")

// ntttcpCases reads the recordings' README. Those of releases that this program does not claim to
// be are left out.
func ntttcpCases(t *testing.T) []*ntttcpCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldentest.Root(t), "testdata", "goldens", ntttcpFamily, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*ntttcpCase
	byName := map[string]*ntttcpCase{}
	for _, m := range ntttcpRow.FindAllStringSubmatch(string(data), -1) {
		if strings.Contains(m[1], "-v1.") {
			continue
		}
		c := byName[m[1]]
		if c == nil {
			c = &ntttcpCase{name: m[1], roles: map[string]*ntttcpCommand{}}
			byName[m[1]] = c
			all = append(all, c)
		}
		exit, err := strconv.Atoi(m[4])
		if err != nil {
			t.Fatal(err)
		}
		c.roles[m[2]] = &ntttcpCommand{strings.Fields(m[3]), exit}
	}
	if len(all) < 20 {
		t.Fatalf("only %d cases in the README", len(all))
	}
	return all
}

// ntttcpExits are the exit codes that differ from the recorded ones: where the original waits until
// it is interrupted, or is content with a test that broke off.
var ntttcpExits = map[string]int{
	"23-source-port-in-use.sender": 24,
	"25-data-reset.receiver":       6,
	"26-too-few-ports.sender":      24,
}

// TestNTTTCPRecordings runs every recorded command line of ntttcp-for-linux 1.4.3 again, both ends
// in a namespace of their own, and compares what is printed and written by layout.
func TestNTTTCPRecordings(t *testing.T) {
	t.Parallel()
	dev := &deviations{all: goldentest.ReadDeviations(t)}
	t.Run("all", func(t *testing.T) {
		for _, c := range ntttcpCases(t) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				b := &ntttcpBench{bench: newBench(t, ntttcpFamily), c: c, dev: dev}
				play, ok := ntttcpSpecials[c.name]
				if !ok {
					play = (*ntttcpBench).plain
				}
				play(b)
			})
		}
	})
	dev.all.CheckLive(t, ntttcpFamily)
}

// ntttcpBench runs one case.
type ntttcpBench struct {
	*bench
	c   *ntttcpCase
	dev *deviations
}

// ntttcpEnd is one end of a case that runs.
type ntttcpEnd struct {
	role, dir string
	*lab.Process
}

// begin starts a role in a folder of its own: both write files of the same names.
func (b *ntttcpBench) begin(role string) *ntttcpEnd {
	b.Helper()
	return b.beginOn(role, nil)
}

// beginOn is begin with another standard output than a file.
func (b *ntttcpBench) beginOn(role string, stdout *os.File) *ntttcpEnd {
	b.Helper()
	dir := b.TempDir()
	words := append([]string{program, "ntttcp"}, b.c.roles[role].words...)
	p, err := b.net.Near.Start(lab.Command{Args: words, Dir: dir, Env: []string{"TZ=UTC", "TERM=xterm"}, Stdout: stdout})
	b.check(err)
	b.Cleanup(func() {
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	return &ntttcpEnd{role, dir, p}
}

// shows waits until an end has printed a text.
func (b *ntttcpBench) shows(e *ntttcpEnd, text string) {
	b.Helper()
	b.until(e.role+" says "+text, func() bool { return strings.Contains(e.Stdout(), text) || ended(e.Process) })
	if !strings.Contains(e.Stdout(), text) {
		b.Fatalf("%s ended without %q: %s%s", e.role, text, e.Stdout(), e.Stderr())
	}
}

// receiver starts the receiver and waits until it is there.
func (b *ntttcpBench) receiver() *ntttcpEnd {
	b.Helper()
	e := b.begin("receiver")
	b.shows(e, "threads created")
	return e
}

// end waits for the end and compares all that it left.
func (b *ntttcpBench) end(e *ntttcpEnd) {
	b.Helper()
	got := b.wait(e.Process)
	want := b.c.roles[e.role].exit
	name := b.c.name + "." + e.role
	if exit, ok := ntttcpExits[name]; ok {
		want = exit
	}
	if got.exit != want {
		b.Errorf("%s: exit %d, want %d\n%s", e.role, got.exit, want, got)
	}
	b.like(e.role, "txt", got.stdout)
	for _, g := range goldentest.NTTTCP(b, name+".*") {
		if g.Ext == "txt" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(e.dir, "ntttcp-for-linux-log."+g.Ext))
		b.check(err)
		b.like(e.role, g.Ext, string(data))
	}
}

// like compares a stream or file with the recorded one.
func (b *ntttcpBench) like(role, ext, got string) {
	b.Helper()
	recorded := goldentest.NTTTCP(b, b.c.name+"."+role+"."+ext)
	if len(recorded) != 1 {
		b.Fatalf("%d recordings of %s.%s.%s", len(recorded), b.c.name, role, ext)
	}
	w, g := b.dev.apply(ntttcpFamily, b.c.name+"."+role, unnamed(string(recorded[0].Data)), unnamed(got))
	want, have := ntttcpLayout(w), ntttcpLayout(g)
	if diff := cmp.Diff(want.lines, have.lines); diff != "" {
		b.Errorf("%s.%s (-recorded +ours):\n%s\nours:\n%s", role, ext, diff, got)
	}
	if diff := cmp.Diff(want.debug, have.debug); diff != "" {
		b.Errorf("%s.%s: kinds of DBG lines (-recorded +ours):\n%s\nours:\n%s", role, ext, diff, got)
	}
}

// hostWords are what documents say of the host.
var hostWords = regexp.MustCompile(`(computername=")[^"]*"|(<os>).*(</os>)|("computername" : ")[^"]*"|("os" : ")[^"]*"`)

func unnamed(text string) string { return hostWords.ReplaceAllString(text, "$1$2$4$5…$3") }

// ntttcpForm is what two runs of one command must share. The lines of level DBG come from threads of
// their own in the original, in any order: their kinds must be the same.
type ntttcpForm struct {
	lines []string
	debug []string
}

func ntttcpLayout(text string) ntttcpForm {
	var l ntttcpForm
	kinds := map[string]bool{}
	for line := range strings.Lines(goldentest.MaskNTTTCP(text)) {
		switch {
		case !strings.Contains(line, " DBG : "):
			if n := len(l.lines); n == 0 || l.lines[n-1] != line { // a DBG line may have stood between
				l.lines = append(l.lines, line)
			}
		case !strings.Contains(line, "socket closed"): // which the original does as it comes
			kinds[line] = true
		}
	}
	l.debug = slices.Sorted(maps.Keys(kinds))
	return l
}

// plain runs a receiver, if there is one, and one sender to their ends.
func (b *ntttcpBench) plain() {
	var r *ntttcpEnd
	if b.c.roles["receiver"] != nil {
		r = b.receiver()
	}
	b.end(b.begin("sender"))
	if r != nil {
		b.end(r)
	}
}

// flows starts both and waits for the first report.
func (b *ntttcpBench) flows() (r, s *ntttcpEnd) {
	r = b.receiver()
	s = b.begin("sender")
	b.shows(s, "Real-time throughput")
	b.shows(r, "Real-time throughput")
	return r, s
}

var ntttcpSpecials = map[string]func(*ntttcpBench){
	"08-multi-client": func(b *ntttcpBench) {
		r := b.receiver()
		one := b.begin("sender1")
		b.shows(one, "waiting for the last client")
		b.end(b.begin("sender2"))
		b.end(one)
		b.end(r)
	},
	"10-hold": func(b *ntttcpBench) {
		r := b.receiver()
		for i, sender := range []string{"sender1", "sender2"} {
			b.end(b.begin(sender))
			b.until("the receiver has printed its totals", func() bool { return strings.Count(r.Stdout(), "cpu busy") > i })
		}
		b.signal(r.Process, os.Interrupt)
		b.end(r)
	},
	"12-tty-realtime": func(b *ntttcpBench) {
		screens := map[string]*screen{"receiver": newScreen(b), "sender": newScreen(b)}
		r := b.beginOn("receiver", screens["receiver"].device)
		b.until("the receiver listens", func() bool { return strings.Contains(screens["receiver"].now(), "threads created") || ended(r.Process) })
		s := b.beginOn("sender", screens["sender"].device)
		for _, e := range []*ntttcpEnd{s, r} {
			if got := b.wait(e.Process); got.exit != 0 {
				b.Errorf("%s: %s", e.role, got)
			}
			b.like(e.role, "txt", screens[e.role].text())
		}
	},
	"16-receiver-busy": func(b *ntttcpBench) {
		r := b.receiver()
		one := b.begin("sender1")
		b.shows(one, "Real-time throughput")
		b.end(b.begin("sender2"))
		b.end(one)
		b.end(r)
	},
	"17-sender-ctrl-c": func(b *ntttcpBench) {
		r, s := b.flows()
		b.signal(s.Process, os.Interrupt)
		b.end(s)
		b.end(r)
	},
	"21-continuous": func(b *ntttcpBench) { // an end that the other one stopped says so: each is stopped once
		for _, first := range []string{"sender", "receiver"} {
			ends := map[string]*ntttcpEnd{"receiver": b.receiver()}
			ends["sender"] = b.begin("sender")
			for _, e := range ends {
				b.shows(e, "Network activity progressing")
			}
			b.signal(ends[first].Process, os.Interrupt)
			b.end(ends[first])
			for _, e := range ends {
				b.wait(e.Process)
			}
		}
	},
	"23-source-port-in-use": func(b *ntttcpBench) {
		b.hold(45000)
		r := b.receiver()
		b.end(b.begin("sender"))
		b.signal(r.Process, os.Interrupt)
		b.end(r)
	},
	"25-data-reset": func(b *ntttcpBench) {
		r, s := b.flows()
		b.signal(s.Process, os.Kill)
		b.wait(s.Process)
		b.end(r)
	},
	"26-too-few-ports": func(b *ntttcpBench) {
		r := b.receiver()
		b.end(b.begin("sender"))
		b.signal(r.Process, os.Interrupt)
		b.end(r)
	},
}

// hold has a port until the test ends.
func (b *ntttcpBench) hold(port int) {
	b.Helper()
	b.check(b.net.Near.Do(func() error {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		b.Cleanup(func() { _ = syscall.Close(fd) })
		return syscall.Bind(fd, &syscall.SockaddrInet4{Port: port})
	}))
}

// screen is a terminal.
type screen struct {
	device *os.File // what a program prints to
	over   chan struct{}

	mu    sync.Mutex
	shown strings.Builder
}

func newScreen(b *ntttcpBench) *screen {
	b.Helper()
	control, device, err := openTerminal()
	b.check(err)
	s := &screen{device: device, over: make(chan struct{})}
	go func() { // ends when the last one has closed the terminal
		defer close(s.over)
		defer control.Close()
		buf := make([]byte, 4096)
		for {
			n, err := control.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() { _ = device.Close() })
	return s
}

func (s *screen) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// text is what was shown, when the program has ended.
func (s *screen) text() string {
	_ = s.device.Close()
	<-s.over
	return strings.ReplaceAll(s.now(), "\r\n", "\n")
}

// openTerminal makes a pseudo terminal.
func openTerminal() (control, device *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unlock(control)
	if err == nil {
		device, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = control.Close()
	}
	return control, device, err
}

// unlock lets the other side of a pseudo terminal be opened, and returns its number.
func unlock(control *os.File) (n int, err error) {
	raw, err := control.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			n, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	return n, errors.Join(err, failed)
}
