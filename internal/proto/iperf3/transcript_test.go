package iperf3

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recording is one conversation of two real iperf3 programs (testdata/transcripts).
type recording struct {
	name   string
	Meta   meta
	events []recorded
}

type meta struct {
	Case         string `json:"case"`
	Client       string `json:"client"`
	Server       string `json:"server"`
	ClientArgs   string `json:"client_args"`
	ServerArgs   string `json:"server_args"`
	ClientSignal string `json:"client_signal"`
	ServerSignal string `json:"server_signal"`
}

// recorded is one thing that happened on one connection.
type recorded struct {
	T         float64 `json:"t"`
	Ev        string  `json:"ev"` // open, data, dgram, fin, reset, summary
	Conn      string  `json:"conn"`
	Dir       string  `json:"dir"` // "C>S" or "S>C"
	Off       int64   `json:"off"`
	Len       int     `json:"len"`
	Hex       string  `json:"hex"`
	Truncated bool    `json:"truncated"`
	Total     int64   `json:"total"`
	N         int     `json:"n"` // datagram number of its direction and flow
	// Datagrams are a flow's totals by direction, greeting and answer included.
	Datagrams map[string]int64 `json:"datagrams"`
}

func (r recorded) bytes() []byte {
	b, err := hex.DecodeString(r.Hex)
	if err != nil {
		panic(err)
	}
	return b
}

// control returns one direction of the control connection.
func (r recording) control(dir string) []byte {
	var out []byte
	for _, e := range r.events {
		if e.Conn == "tcp0" && e.Ev == "data" && e.Dir == dir {
			out = append(out, e.bytes()...)
		}
	}
	return out
}

func loadRecording(t testing.TB, path string) recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rel, _ := filepath.Rel("testdata/transcripts", path)
	r := recording{name: strings.TrimSuffix(filepath.ToSlash(rel), ".jsonl")}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Meta *meta `json:"meta"`
			recorded
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if line.Meta != nil {
			r.Meta = *line.Meta
			continue
		}
		r.events = append(r.events, line.recorded)
	}
	if err := in.Err(); err != nil || len(r.events) == 0 {
		t.Fatalf("%s: nothing read (%v)", path, err)
	}
	return r
}

// recordings returns all of them, sorted by name.
func recordings(t testing.TB) []recording {
	t.Helper()
	paths, err := filepath.Glob("testdata/transcripts/*/*.jsonl")
	if err != nil || len(paths) < 60 {
		t.Fatalf("%d recordings found (%v)", len(paths), err)
	}
	var out []recording
	for _, p := range paths {
		out = append(out, loadRecording(t, p))
	}
	return out
}

// documents returns the cookie and the messages of one direction of the control
// connection, taken apart by our own decoder.
func (r recording) messages(t testing.TB, dir string) (Cookie, []message) {
	t.Helper()
	b := r.control(dir)
	var c Cookie
	if dir == "C>S" {
		if len(b) < CookieSize {
			t.Fatalf("%s: no cookie", r.name)
		}
		b = b[copy(c[:], b):]
	}
	var out []message
	for len(b) > 0 {
		m, n, err := decodeMessage(b, limits{MaxResults, MaxFrame}, dir == "S>C", true)
		if err != nil || n == 0 {
			t.Fatalf("%s %s: %d bytes left: %v", r.name, dir, len(b), err)
		}
		out = append(out, m)
		b = b[n:]
	}
	return c, out
}
