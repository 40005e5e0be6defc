//go:build linux

package fieldcases

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// both20M is a wire of 20 Mbit/s each way, as the cases of NTTCP have it.
var both20M = lab.TBF{BitsPerSecond: 20e6, BurstBytes: 16 << 10, Latency: 50 * time.Millisecond}

// wire20M is PAIR with both20M.
func wire20M(t *testing.T) *bench {
	t.Helper()
	b := pair(t)
	b.check(b.net.Near.SetTBF(lab.PairNear, both20M))
	b.check(b.net.Far.SetTBF(lab.PairFar, both20M))
	return b
}

// nt starts NT in a namespace.
func (b *bench) nt(ns *lab.Namespace, args ...string) *lab.Process {
	b.Helper()
	return b.startCmd(ns, lab.Command{Args: append([]string{program, "ntttcp"}, args...)})
}

// ntReceiver starts NT -r on the far end and waits until it is there.
func (b *bench) ntReceiver(args ...string) *lab.Process {
	b.Helper()
	p := b.nt(b.net.Far, append([]string{"-r" + b.addr}, args...)...)
	b.shows(p, "threads created")
	return p
}

// shows waits until a program has printed a text.
func (b *bench) shows(p *lab.Process, text string) {
	b.Helper()
	b.until("it says "+text, func() bool { return strings.Contains(p.Stdout(), text) || ended(p) })
	if !strings.Contains(p.Stdout(), text) {
		b.Fatalf("it ended without %q: %s%s", text, p.Stdout(), p.Stderr())
	}
}

// ntSender runs NT -s on the near end.
func (b *bench) ntSender(args ...string) lab.Result {
	b.Helper()
	return b.result(b.nt(b.net.Near, append([]string{"-s" + b.addr}, args...)...), 30*time.Second)
}

// result waits for a program, at most limit.
func (b *bench) result(p *lab.Process, limit time.Duration) lab.Result {
	b.Helper()
	code, err := p.Wait(b.ctx(limit))
	if err != nil {
		b.Fatalf("not over after %v: %v\n%s%s", limit, err, p.Stdout(), p.Stderr())
	}
	return lab.Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}
}

// ok is result for a program that must succeed.
func (b *bench) ok(r lab.Result) lab.Result {
	b.Helper()
	if r.Code != 0 {
		b.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r
}

var (
	ntBytes = regexp.MustCompile(`(?m)total bytes\t:(\d+)$`)
	ntRate  = regexp.MustCompile(`(?m)\t throughput\t:([0-9.]+)([KMG]?)bps$`)
)

// figure reads the one number that a pattern finds.
func (b *bench) figure(text string, pattern *regexp.Regexp) float64 {
	b.Helper()
	m := pattern.FindAllStringSubmatch(text, -1)
	if len(m) != 1 {
		b.Fatalf("%d × %v in %s", len(m), pattern, text)
	}
	v, err := strconv.ParseFloat(m[0][1], 64)
	b.check(err)
	return v
}

// mbps reads the throughput of a console's totals, Mbit/s.
func (b *bench) mbps(text string) float64 {
	b.Helper()
	unit := ntRate.FindStringSubmatch(text)
	v := b.figure(text, ntRate)
	return v * map[string]float64{"": 1e-6, "K": 1e-3, "M": 1, "G": 1e3}[unit[2]]
}

// F58: a receiver whose sender has died returns, with what it has.
func TestNTTTCPSenderDies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		gone bool
		stay bool // -H
	}{{"killed", false, false}, {"gone", true, false}, {"killed, -H", false, true}, {"gone, -H", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := wire20M(t)
			b.check(b.net.Near.AddAddress(lab.PairNear, ghost+"/24"))
			args := []string{"-P", "1", "-t", "2"}
			if c.stay {
				args = append(args, "-H")
			}
			r := b.ntReceiver(args...)
			words := []string{"-s" + b.addr, "-P", "1", "-n", "1", "-t", "6"}
			if c.gone {
				words = append(words, "-a", ghost)
			}
			begin := time.Now()
			s := b.nt(b.net.Near, words...)
			b.shows(s, "Network activity progressing")
			b.until("1.2 s have passed", func() bool { return time.Since(begin) > 1200*time.Millisecond })
			if c.gone {
				gone(b, s)
			} else {
				b.check(s.Signal(os.Kill))
			}
			// The ends agreed on the longer of both times.
			const most = (6 + 5) * time.Second
			over := func() bool { return ntBytes.MatchString(r.Stdout()) }
			b.until("the receiver has a result", func() bool { return over() || ended(r) || time.Since(begin) > 2*most })
			if took := time.Since(begin); took > most || !over() {
				t.Fatalf("no result, or after %v: %s%s", took, r.Stdout(), r.Stderr())
			}
			said := func() string { return r.Stdout() + r.Stderr() }
			why := "the sender disappeared"
			if c.gone {
				why = "s: the sender, or the path, has stopped"
			}
			b.until("it says why", func() bool { return strings.Contains(said(), why) || ended(r) })
			b.says(said(), why)
			// 1.2 s at 20 Mbit/s, and what was in the queues.
			b.within("bytes", b.figure(r.Stdout(), ntBytes), 1e6, 5e6)
			if !c.stay {
				if got := b.result(r, 5*time.Second); got.Code == 0 {
					t.Errorf("exit 0: %s", said())
				}
				return
			}
			// It accepts the next one, also from the address whose sender is dead.
			b.ok(b.ntSender("-P", "1", "-n", "1", "-t", "1"))
			if ended(r) {
				t.Errorf("-H: it ended: %s", said())
			}
			b.until("the second result is there", func() bool { return len(ntBytes.FindAllString(r.Stdout(), -1)) == 2 || ended(r) })
		})
	}
}

// F59: a sender that wants more ports than there are says which, and the receiver is
// there for the next one.
func TestNTTTCPTooFewPorts(t *testing.T) {
	t.Parallel()
	b := wire20M(t)
	r := b.ntReceiver("-P", "2", "-t", "2")
	begin := time.Now()
	s := b.ntSender("-P", "4", "-n", "1", "-t", "2")
	if took := time.Since(begin); s.Code == 0 || took > 5*time.Second {
		t.Errorf("exit %d after %v", s.Code, took)
	}
	b.says(s.Stdout+s.Stderr, "nothing listens on port 5003, 5004", "the same number of ports (-P)")
	if ended(r) { // with a reason, or not at all
		b.says(r.Stdout()+r.Stderr(), "sender")
		r = b.ntReceiver("-P", "2", "-t", "2")
	}
	b.ok(b.ntSender("-P", "1", "-n", "1", "-t", "2"))
	got := b.ok(b.result(r, 10*time.Second))
	b.within("Mbit/s", b.mbps(got.Stdout), 17, 20)
}

// ntFigures are what a file of results says.
type ntFigures struct {
	host            string
	mbps            float64
	threads         []float64
	bytes, realtime float64
}

func (f ntFigures) sum() (v float64) {
	for _, t := range f.threads {
		v += t
	}
	return v
}

// ntXML reads a file of -x strictly.
func ntXML(b *bench, data []byte) (f ntFigures) {
	b.Helper()
	type metric struct {
		Metric string  `xml:"metric,attr"`
		Value  float64 `xml:",chardata"`
	}
	var d struct {
		Host       string   `xml:"computername,attr"`
		Throughput []metric `xml:"throughput"`
		Threads    []struct {
			Throughput []metric `xml:"throughput"`
		} `xml:"thread"`
		Bytes    metric `xml:"total_bytes"`
		Realtime metric `xml:"realtime"`
	}
	dec := xml.NewDecoder(strings.NewReader(string(data)))
	dec.Strict = true
	b.check(dec.Decode(&d))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatalf("after the document: %v", err)
		}
	}
	one := func(all []metric) float64 {
		for _, m := range all {
			if m.Metric == "mbps" {
				return m.Value
			}
		}
		b.Fatalf("no mbps in %s", data)
		return 0
	}
	f = ntFigures{host: d.Host, mbps: one(d.Throughput), bytes: d.Bytes.Value, realtime: d.Realtime.Value}
	for _, t := range d.Threads {
		f.threads = append(f.threads, one(t.Throughput))
	}
	return f
}

// ntJSON reads a file of -j strictly.
func ntJSON(b *bench, data []byte, role string) (f ntFigures) {
	b.Helper()
	d := b.parse(string(data))
	num := func(path string) float64 {
		text, ok := d.at(path).(string)
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			b.Fatalf("%s is %v", path, d.at(path))
		}
		return v
	}
	one := func(path string) float64 {
		for i := range d.list(path) {
			if at := fmt.Sprintf("%s.%d.", path, i); d.at(at+"metric") == "mbps" {
				return num(at + "value")
			}
		}
		b.Fatalf("no mbps in %s", path)
		return 0
	}
	f.host, _ = d.at(role + ".computername").(string)
	f.mbps, f.bytes, f.realtime = one(role+".throughputs"), num(role+".totalBytes.value"), num(role+".realTime.value")
	if !d.has(role + ".threads") {
		return f
	}
	for i := range d.list(role + ".threads") {
		f.threads = append(f.threads, one(fmt.Sprintf("%s.threads.%d.throughputs", role, i)))
	}
	return f
}

// F60: console, XML and JSON say the same, whatever the names. Threads are in it with -V, as in
// the original.
func TestNTTTCPFilesAgree(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"short": nil, "verbose": {"-V"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filesAgree(t, len(more) > 0, more...)
		})
	}
}

func filesAgree(t *testing.T, threads bool, more ...string) {
	t.Helper()
	b := wire20M(t)
	const host = `a&b<"c`
	dir := filepath.Join(t.TempDir(), `x & < " y`)
	b.check(os.Mkdir(dir, 0o755))
	file := func(name string) string { return filepath.Join(dir, `&<" `+name) }
	begin := func(ns *lab.Namespace, role string, args ...string) *lab.Process {
		words := append([]string{"unshare", "--uts", "sh", "-c", `printf %s "$0" > /proc/sys/kernel/hostname && exec "$@"`, host, program, "ntttcp"}, args...)
		words = append(words, "-P", "2", "-t", "2", "-W", "1", "-x", file(role+".xml"), "-j", file(role+".json"))
		return b.startCmd(ns, lab.Command{Args: append(words, more...)})
	}
	r := begin(b.net.Far, "r", "-r"+b.addr)
	b.shows(r, "threads created")
	s := begin(b.net.Near, "s", "-s"+b.addr, "-n", "1")
	for role, p := range map[string]*lab.Process{"r": r, "s": s} {
		got := b.ok(b.result(p, 20*time.Second))
		x, err := os.ReadFile(file(role + ".xml"))
		b.check(err)
		j, err := os.ReadFile(file(role + ".json"))
		b.check(err)
		for kind, f := range map[string]ntFigures{"XML": ntXML(b, x), "JSON": ntJSON(b, j, "ntttcp"+role)} {
			what := role + " " + kind + ": "
			if f.host != host {
				t.Errorf("%shost name %q", what, f.host)
			}
			f.like(b, what, got.Stdout)
			if n := len(f.threads); threads && n != 2 || !threads && n != 0 {
				t.Errorf("%sthreads %v", what, f.threads)
			}
			if threads { // three decimals each
				b.within(what+"sum of threads", f.sum(), f.mbps-0.0016, f.mbps+0.0016)
			}
		}
	}
}

// like compares a file with the console.
func (f ntFigures) like(b *bench, what, console string) {
	b.Helper()
	shown := b.mbps(console)
	b.within(what+"Mbit/s", f.mbps, 17, 21)
	b.within(what+"Mbit/s, beside the console's", f.mbps, shown-0.00501, shown+0.00501)
	if total := b.figure(console, ntBytes); math.Abs(f.bytes*1e6-total) > 0.5 {
		b.Errorf("%s%f MB, the console has %.0f bytes", what, f.bytes, total)
	}
	if off := f.bytes*8/f.realtime/f.mbps - 1; math.Abs(off) > 1e-4 {
		b.Errorf("%s%f MB in %f s are no %f Mbit/s", what, f.bytes, f.realtime, f.mbps)
	}
}

// F60: a file that cannot be written is no test.
func TestNTTTCPFileUnwritable(t *testing.T) {
	t.Parallel()
	b := pair(t)
	missing := filepath.Join(t.TempDir(), "no", "file")
	r := b.ntReceiver("-P", "2", "-t", "2")
	for _, option := range []string{"-x", "-j"} {
		for role, p := range map[string]*lab.Process{
			"sender":   b.nt(b.net.Near, "-s"+b.addr, "-P", "2", "-t", "2", option, missing),
			"receiver": b.nt(b.net.Near, "-r", "-P", "2", "-t", "2", option, missing),
		} {
			got := b.result(p, 10*time.Second)
			if got.Code == 0 {
				t.Errorf("%s %s: exit 0", role, option)
			}
			b.says(got.Stdout+got.Stderr, missing)
			if strings.Contains(got.Stdout, "threads created") {
				t.Errorf("%s %s: it began: %s", role, option, got.Stdout)
			}
		}
	}
	if strings.Contains(r.Stdout(), "Network activity") || ended(r) {
		t.Errorf("the receiver saw a test: %s", r.Stdout())
	}
}

// F61: of UDP what arrived is the result, and what was sent is said to be the offer.
func TestNTTTCPOfferedAndReceived(t *testing.T) {
	for _, c := range []struct {
		name             string
		receiver, sender []string
		size             string // the size that must be stated; "" = none
	}{
		{"sync", nil, []string{"-b", "1000"}, ""},
		{"no sync", []string{"-N"}, []string{"-b", "1000", "-N"}, ""},
		{"no size", nil, nil, "65507"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := routed(t)
			b.check(b.net.Router.SetTBF(lab.RouterFar, both20M))
			b.check(b.net.Far.NFT(b.ctx(time.Minute), `table inet t { chain i { type filter hook input priority 0; udp dport 5001 counter comment "arrived"; }; }`))
			r := b.ntReceiver(append([]string{"-u", "-P", "1", "-t", "2"}, c.receiver...)...)
			begin := time.Now()
			s := b.nt(b.net.Near, append([]string{"-s" + b.addr, "-u", "-P", "1", "-n", "1", "-t", "2"}, c.sender...)...)
			sent, got := b.ok(b.result(s, 20*time.Second)), b.ok(b.result(r, 20*time.Second))
			if took := time.Since(begin); took > 7*time.Second {
				t.Errorf("over after %v, want t + 5 s", took)
			}
			if c.size == "" {
				b.sameAsArrived(b.mbps(got.Stdout), 1000, 2)
			}
			b.says(sent.Stderr, "the load that was offered", c.size)
			b.says(got.Stderr, "the result is what was received here")
			if b.mbps(sent.Stdout) < b.mbps(got.Stdout) {
				t.Errorf("offered less than arrived:\n%s\n%s", sent.Stdout, got.Stdout)
			}
		})
	}
}

// sameAsArrived compares a receiver's Mbit/s with the datagrams that came to its host, of so many
// bytes, in so many seconds. What leaves the router's queue after the end is in no result. On a busy
// machine the router does not get to send 20 Mbit/s.
func (b *bench) sameAsArrived(mbps, size, seconds float64) {
	b.Helper()
	n, err := b.net.Far.NFTCounter(b.ctx(time.Minute), "arrived")
	b.check(err)
	arrived := float64(n.Packets) * size * 8 / seconds / 1e6
	b.within(fmt.Sprintf("received, Mbit/s, where %.2f arrived,", arrived), mbps, 0.94*arrived, 1.02*arrived)
	if arrived < 18.8 {
		b.Logf("machine unfit: the router let %.2f Mbit/s through", arrived)
		return
	}
	b.within("received, Mbit/s", mbps, 18, 20)
}

// F62: strangers on the synchronisation port get no answer, and do not block a sender.
func TestNTTTCPStrangers(t *testing.T) {
	t.Parallel()
	b := wire20M(t)
	r := b.ntReceiver("-P", "1", "-t", "1")
	const syncPort = "5000"
	visits := map[string]wire{"a web browser": b.knock(syncPort, "GET / HTTP/1.0\r\n\r\n"), "a silent one": b.knock(syncPort, "")}
	came := time.Now()
	s := b.nt(b.net.Near, "-s"+b.addr, "-P", "1", "-n", "1", "-t", "1")
	b.shows(s, "Network activity progressing")
	if took := time.Since(came); took > 2*time.Second {
		t.Errorf("a real sender starts after %v", took)
	}
	for who, w := range visits {
		if data, err := w.rest(time.Until(came.Add(5500 * time.Millisecond))); err != nil || len(data) > 0 {
			t.Errorf("%s: %q, %v", who, data, err)
		}
	}
	sent, got := b.ok(b.result(s, 20*time.Second)), b.ok(b.result(r, 20*time.Second))
	b.within("sent, Mbit/s", b.mbps(sent.Stdout), 17, 30) // what is in the queues was sent, too
	b.within("received, Mbit/s", b.mbps(got.Stdout), 17, 20)
}

// F63: holding back is no reason to spin.
func TestNTTTCPPacedSenderSleeps(t *testing.T) {
	b := pair(t)
	r := b.ntReceiver("-P", "1", "-t", "3")
	s := b.nt(b.net.Near, "-s"+b.addr, "-P", "1", "-n", "1", "-t", "3", "-B", "20M")
	used := 0.0
	b.until("the sender ends", func() bool {
		if v, ok := cpuSeconds(s.Pid()); ok {
			used = v
		}
		return ended(s)
	})
	if used >= 0.6 || used == 0 {
		t.Errorf("%.2f s of CPU for 3 s at 20 Mbit/s", used)
	}
	b.ok(b.result(s, time.Second))
	b.within("Mbit/s", b.mbps(b.ok(b.result(r, 10*time.Second)).Stdout), 19.4, 20.6)
}

// knock connects from the near end to a port of the far one and sends a text.
func (b *bench) knock(port, text string) wire {
	b.Helper()
	d := net.Dialer{Timeout: 10 * time.Second}
	var c net.Conn
	b.check(b.net.Near.Do(func() (err error) {
		c, err = d.Dial("tcp", net.JoinHostPort(b.addr, port))
		return err
	}))
	b.Cleanup(func() { _ = c.Close() })
	_, err := io.WriteString(c, text)
	b.check(err)
	return wire{Conn: c}
}
