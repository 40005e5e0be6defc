//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// pipe starts the drop-in with standard output in a pipe.
func (b *bench) pipe(ns *lab.Namespace, words ...string) (*lab.Process, *os.File) {
	b.Helper()
	r, w, err := os.Pipe()
	b.check(err)
	b.Cleanup(func() { _ = r.Close() })
	p := b.startCmd(ns, lab.Command{Args: append([]string{program, "iperf3"}, words...), Stdout: w})
	b.check(w.Close())
	return p, r
}

// readTo reads r write by write until what came matches, and returns the last read.
func (b *bench) readTo(r io.Reader, want *regexp.Regexp) string {
	b.Helper()
	var all strings.Builder
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		all.Write(buf[:n])
		if want.MatchString(all.String()) {
			return string(buf[:n])
		}
		if err != nil {
			b.Fatalf("%v before %v in %q", err, want, all.String())
		}
	}
}

// TestLinesAtOnce: who reads from a pipe has a report before the next one exists. The
// tests have no end, so nothing is flushed by an exit.
func TestLinesAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		first, second  string // reports, as regular expressions
		client, server []string
		onServer       bool
	}{
		{"client", `(?m)^\[  5\]   0\.00-2\.0`, `\[  5\]   2\.0`, []string{"-i", "2"}, nil, false},
		{"client with several streams", `(?m)^\[SUM\]   0\.00-2\.0`, `\[SUM\]   2\.0`, []string{"-i", "2", "-P", "2"}, nil, false},
		{"server", `(?m)^\[  5\]   0\.00-2\.0`, `\[  5\]   2\.0`, nil, []string{"-i", "2"}, true},
		{"server's banner", `Server listening on 5201 \(test #1\)\n-+\n`, `Accepted`, nil, nil, true},
		{"client's events", `(?m)^\{"event":"interval"`, `"interval".*\n.*"interval"`, []string{"-i", "2", "--json-stream"}, nil, false},
		{"server's events", `(?m)^\{"event":"interval"`, `"interval".*\n.*"interval"`, nil, []string{"-i", "2", "--json-stream"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "3.21")
			server, fromServer := b.pipe(b.net.Far, append([]string{"-s", "-1"}, c.server...)...)
			b.listens(server)
			client, fromClient := b.pipe(b.net.Near, append([]string{"-c", far4, "-t", "0", "-b", "1M"}, c.client...)...)
			from := fromClient
			if c.onServer {
				from = fromServer
			}
			got := b.readTo(from, regexp.MustCompile(c.first))
			if regexp.MustCompile(c.second).MatchString(got) {
				t.Errorf("two reports came at once: %q", got)
			}
			if !strings.HasSuffix(got, "\n") {
				t.Errorf("a part of a line came: %q", got)
			}
			for _, p := range []*lab.Process{client, server} {
				if ended(p) {
					t.Errorf("ended: %s", p.Stderr())
				}
			}
		})
	}
}

// TestReaderGone: when the reader of the output leaves (`| head -1`), a client finishes
// its test and a server serves on: SIGPIPE is ignored.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	for _, form := range [][]string{nil, {"-J"}, {"--json-stream"}} {
		t.Run(strings.Join(append([]string{"text"}, form...), " "), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "3.21")
			server, fromServer := b.pipe(b.net.Far, append([]string{"-s"}, form...)...)
			b.listens(server)
			b.check(fromServer.Close())
			client, r := b.pipe(b.net.Near, append([]string{"-c", far4, "-t", "1", "-b", "1M", "-i", "0.1"}, form...)...)
			b.check(r.Close())
			if got := b.wait(client); got.exit != 0 || got.stderr != "" {
				t.Errorf("%s", got)
			}
			if got := b.client(nil, "-c", far4, "-n", "64K"); got.exit != 0 || got.stderr != "" {
				t.Errorf("the second client: %s", got)
			}
			if ended(server) || server.Stderr() != "" {
				t.Errorf("the server: ended %v, %s", ended(server), server.Stderr())
			}
		})
	}
}

// TestDiskFull: output that cannot be written is an error, whatever its form.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"-4", "-J", "--json-stream"} {
		b := newBench(t, "3.21")
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		b.check(err)
		server := b.serve(nil, "-s", "-1")
		p := b.startCmd(b.net.Near, lab.Command{Args: []string{program, "iperf3", "-c", far4, "-n", "64K", form}, Stdout: full})
		b.check(full.Close())
		if got := b.wait(p); got.exit != 1 || !strings.HasSuffix(got.stderr, ": no space left on device\n") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %s", form, got)
		}
		b.wait(server)
	}
}

// TestSecondInterrupt: the first Ctrl-C waits for the other end's figures, which a
// frozen one does not send; the second does not wait.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release  string
		patience bool // one Ctrl-C only
		exit     int
	}{{"3.21", true, 0}, {"3.12", true, 1}, {"3.21", false, 1}} {
		t.Run(fmt.Sprintf("%s patient %v", c.release, c.patience), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.release)
			server := b.serve(nil, "-s")
			client := b.start(b.net.Near, nil, "-c", far4, "-t", "0", "-b", "5M", "-i", "0.5")
			b.until("the client reports", func() bool { return strings.Contains(client.Stdout(), "\n[  5]   0.00-0.5") || ended(client) })
			b.signal(server, syscall.SIGSTOP)
			b.signal(client, os.Interrupt)
			if !c.patience {
				b.until("the client ends", func() bool {
					_ = client.Signal(os.Interrupt) // one that comes while the last is on its way is lost
					return ended(client)
				})
			}
			got := b.wait(client)
			if got.exit != c.exit {
				t.Errorf("exit %d, want %d\n%s", got.exit, c.exit, got)
			}
			partial := strings.Contains(got.stdout, "- - -") && strings.HasPrefix(got.stderr, "iperf3: interrupt - the client has terminated")
			if partial != c.patience {
				t.Errorf("partial result: %v\n%s", partial, got)
			}
		})
	}
}

// terminal opens a pseudo terminal: what is written to the slave comes out of master.
func terminal(b *bench) (master, slave *os.File) {
	b.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	b.check(err)
	b.Cleanup(func() { _ = master.Close() })
	b.check(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	b.check(err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	b.check(err)
	b.Cleanup(func() { _ = slave.Close() })
	b.check(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
	return master, slave
}

// TestTerminal: on a terminal, too, the output is iperf3's: no colour, no live view,
// nothing wrapped.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	dev := &deviations{all: goldentest.ReadDeviations(t)}
	b.serve(nil, "-s", "-1")
	master, slave := terminal(b)
	client := b.startCmd(b.net.Near, lab.Command{
		Args: []string{program, "iperf3", "-c", far4, "-i", "0", "-t", "1", "-b", "100M"}, Stdin: slave, Stdout: slave, Stderr: slave,
	})
	b.check(slave.Close())
	out, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // what a terminal's end is on Linux
		t.Fatal(err)
	}
	got := b.wait(client)
	if got.exit != 0 {
		t.Errorf("exit %d", got.exit)
	}
	text := strings.ReplaceAll(string(out), "\r\n", "\n")
	c := comparison{bench: b, dev: dev, name: "tcp_i0.client"}
	c.noColour(text)
	c.stdout(text)
}

// TestPasswordPrompt: without IPERF3_PASSWORD the password is asked for on the terminal,
// and not shown.
func TestPasswordPrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.files()
	server := b.serve(nil, "-s", "-1", "--rsa-private-key-path", "priv.pem", "--authorized-users-path", "users.csv")
	master, slave := terminal(b)
	client := b.startCmd(b.net.Near, lab.Command{
		Args:  []string{program, "iperf3", "-c", far4, "-n", "1M", "--username", "mario", "--rsa-public-key-path", "pub.pem"},
		Stdin: slave, Env: []string{"IPERF3_PASSWORD="},
	})
	b.until("the password is asked for", func() bool { return strings.Contains(client.Stderr(), "Password: ") || ended(client) })
	_, err := io.WriteString(master, "rossi\n")
	b.check(err)
	got := b.wait(client)
	if got.exit != 0 || strings.TrimSpace(got.stderr) != "Password:" || !strings.Contains(got.stdout, "\niperf Done.\n") {
		t.Errorf("%s", got)
	}
	if out := b.wait(server); out.exit != 0 {
		t.Errorf("server: %s", out)
	}
	b.check(slave.Close())
	if shown, _ := io.ReadAll(master); strings.Contains(string(shown), "rossi") {
		t.Errorf("the terminal shows the password: %q", shown)
	}
}

// TestUnknownRelease: a release that is not known is said, and that the newest is shown.
func TestUnknownRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.99")
	dev := &deviations{all: goldentest.ReadDeviations(t)}
	server := b.serve(nil, "-s", "-1", "-J")
	got := b.client(nil, "-c", far4, "-i", "0", "-t", "1", "-b", "100M")
	const said = "fullbore: FULLBORE_IPERF3_COMPAT=3.99 is not known (3.12, 3.21): behaving as 3.21\n"
	if got.exit != 0 || got.stderr != said {
		t.Errorf("%s", got)
	}
	comparison{bench: b, dev: dev, name: "tcp_i0.client"}.text(golden(t, "3.21", "tcp_i0.client.txt"), got.stdout)
	out := b.wait(server)
	if out.exit != 0 || out.stderr != said {
		t.Errorf("server: %s", out)
	}
	b.says(out.stdout, "\"version\":\t\"iperf 3.21\"", "timemillisecs")
}
