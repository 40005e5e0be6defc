//go:build linux

// Package fieldcases holds the troubles that people met in practice with tools like
// this one, each as a test: the condition is built from namespaces, the command line is
// what they typed, and every sentence of what would have been right is checked.
package fieldcases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// port is the one that the field cases use.
const port = "5301"

var program string // the program under test

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	_ = os.Setenv("FULLBORE_HISTORY", "off") // not into the developer's own
	// Most of these tests wait most of the time; what measures a rate is not parallel.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "12"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	program = os.Getenv("FULLBORE")
	if program == "" {
		dir, err := os.MkdirTemp("", "fieldcases")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "fullbore")
		if out, err := exec.Command("go", "build", "-o", program, "../../cmd/fullbore").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// bench is a topology with the program under test.
type bench struct {
	*testing.T
	net  *lab.Network
	addr string // of the far end
}

func newBench(t *testing.T, make func(string) (*lab.Network, error), addr string) *bench {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI runs as root: namespaces are needed")
		}
		t.Skip("needs root for network namespaces; make test runs as root in CI")
	}
	n, err := make("cubic") // the system's default may be BBR, which hides loss
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, n, addr}
}

// pair is PAIR: two hosts on one wire.
func pair(t *testing.T) *bench { return newBench(t, lab.NewPair, lab.FarIPv4) }

// routed is ROUTED: a router between them, where queues really drop.
func routed(t *testing.T) *bench { return newBench(t, lab.NewRouted, lab.RoutedFarIPv4) }

// ctx bounds one step; nothing here takes longer than two minutes unless it hangs.
func (b *bench) ctx(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	b.Cleanup(cancel)
	return ctx
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// start starts the drop-in in a namespace.
func (b *bench) start(ns *lab.Namespace, args ...string) *lab.Process {
	b.Helper()
	return b.startCmd(ns, lab.Command{Args: append([]string{program, "iperf3"}, args...)})
}

func (b *bench) startCmd(ns *lab.Namespace, c lab.Command) *lab.Process {
	b.Helper()
	p, err := ns.Start(c)
	b.check(err)
	b.Cleanup(func() {
		_ = p.Signal(syscall.SIGCONT)
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	return p
}

// serve starts LR -s on the far end and waits until it listens.
func (b *bench) serve(args ...string) *lab.Process {
	b.Helper()
	p := b.start(b.net.Far, append([]string{"-s", "-p", port}, args...)...)
	b.until("the server listens", func() bool {
		ok, err := b.net.Far.Listening()
		b.check(err)
		return ok || ended(p)
	})
	if ended(p) {
		b.Fatalf("server ended: %s%s", p.Stdout(), p.Stderr())
	}
	return p
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
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			b.Fatalf("waited a minute in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// client runs LR on the near end against the far end's first address.
func (b *bench) client(args ...string) lab.Result {
	b.Helper()
	return b.clientTo(b.addr, 90*time.Second, args...)
}

func (b *bench) clientTo(addr string, limit time.Duration, args ...string) lab.Result {
	b.Helper()
	r, err := b.net.Near.Run(b.ctx(limit), append([]string{program, "iperf3", "-c", addr, "-p", port}, args...)...)
	if err != nil {
		b.Fatalf("client %v: %v\n%s%s", args, err, r.Stdout, r.Stderr)
	}
	return r
}

// good is client for a run that must succeed.
func (b *bench) good(args ...string) lab.Result {
	b.Helper()
	r := b.client(args...)
	if r.Code != 0 {
		b.Fatalf("client %v: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// fails is client for a run that must exit 1 and say all the words on stderr.
func (b *bench) fails(words []string, args ...string) lab.Result {
	b.Helper()
	r := b.client(args...)
	if r.Code != 1 {
		b.Errorf("client %v: exit %d, want 1\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	b.says(r.Stderr, words...)
	return r
}

func (b *bench) says(text string, words ...string) {
	b.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.Errorf("does not say %q: %q", w, text)
		}
	}
}

// doc is a JSON document that was read strictly.
type doc struct {
	b *bench
	v map[string]any
}

// json runs a client with -J that must succeed and reads its document.
func (b *bench) json(args ...string) doc {
	b.Helper()
	return b.parse(b.good(append(args, "-J")...).Stdout)
}

// parse is STRICT: one document, no duplicate keys, valid UTF-8, nothing after it.
func (b *bench) parse(text string) doc {
	b.Helper()
	v, err := strict([]byte(text))
	if err != nil {
		b.Fatalf("not one strict JSON document: %v\n%s", err, text)
	}
	m, ok := v.(map[string]any)
	if !ok {
		b.Fatalf("not an object: %s", text)
	}
	return doc{b, m}
}

func strict(data []byte) (any, error) {
	if !bytes.Equal(bytes.ToValidUTF8(data, nil), data) {
		return nil, errors.New("invalid UTF-8")
	}
	if !json.Valid(data) {
		return nil, errors.New("not JSON")
	}
	if err := loneSurrogate(data); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	v, err := strictValue(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the document")
	}
	return v, nil
}

func strictValue(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		m := map[string]any{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if _, dup := m[name]; dup {
				return nil, fmt.Errorf("key %q twice", name)
			}
			if m[name], err = strictValue(dec); err != nil {
				return nil, err
			}
		}
		_, err = dec.Token()
		return m, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := strictValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.Token()
		return list, err
	}
	return tok, nil
}

// at walks to a value; path elements are keys or list indices.
func (d doc) at(path string) any {
	d.b.Helper()
	v, ok := walk(d.v, path)
	if !ok {
		d.b.Fatalf("document has no %s", path)
	}
	return v
}

func (d doc) has(path string) bool {
	_, ok := walk(d.v, path)
	return ok
}

func walk(v any, path string) (any, bool) {
	for _, key := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func (d doc) num(path string) float64 {
	d.b.Helper()
	f, ok := d.at(path).(float64)
	if !ok {
		d.b.Fatalf("%s is %v, not a number", path, d.at(path))
	}
	return f
}

func (d doc) list(path string) []any {
	d.b.Helper()
	l, ok := d.at(path).([]any)
	if !ok {
		d.b.Fatalf("%s is no list", path)
	}
	return l
}

// within checks lo ≤ v ≤ hi.
func (b *bench) within(what string, v, lo, hi float64) {
	b.Helper()
	if v < lo || v > hi {
		b.Errorf("%s is %v, want %v … %v", what, v, lo, hi)
	}
}

// intervals adds up a field of one kind of sum over the counted intervals.
func (d doc) intervals(sum, field string) (total float64, rows int) {
	d.b.Helper()
	for i := range d.list("intervals") {
		base := fmt.Sprintf("intervals.%d.%s.", i, sum)
		if d.at(base+"omitted") == false {
			total += d.num(base + field)
			rows++
		}
	}
	return total, rows
}

func rss(b *bench, pid int) float64 {
	b.Helper()
	return memory(b, pid, "VmRSS:")
}

// memory reads a size from a process's status, bytes.
func memory(b *bench, pid int, field string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	b.check(err)
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			b.check(err)
			return kb * 1024
		}
	}
	b.Fatalf("no %s", field)
	return 0
}

func descriptors(b *bench, pid int) int {
	b.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	b.check(err)
	return len(list)
}

// cpuSeconds is what a process has used so far (user + system), unless it is gone.
func cpuSeconds(pid int) (float64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, false
	}
	u, uerr := strconv.ParseFloat(f[11], 64)
	s, serr := strconv.ParseFloat(f[12], 64)
	return (u + s) / 100, uerr == nil && serr == nil // USER_HZ is 100 on every Linux that Go runs on
}

func itoa(i int) string { return strconv.Itoa(i) }
