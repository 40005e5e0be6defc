package ntttcp

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// recording is one conversation of the original programs (testdata/transcripts; README there).
type recording struct {
	name   string
	meta   recordedMeta
	events []recorded
}

type recordedMeta struct {
	Meta            string   `json:"meta"`
	Receiver        string   `json:"receiver"`
	Senders         []string `json:"senders"`
	ReceiverVersion string   `json:"receiver_version"`
	SenderVersion   string   `json:"sender_version"`
}

// recorded is one thing that happened.
type recorded struct {
	T    float64 `json:"t"`
	Conn int     `json:"conn"`
	Kind string  `json:"kind"` // sync, data, udp
	Ev   string  `json:"ev"`   // open, refused, eof, reset, write_error, first, signal, exit, note
	Dir  string  `json:"dir"`  // "s>r", "r>s"
	Len  int     `json:"len"`
	Hex  string  `json:"hex"`
	Port int     `json:"port"`
	Who  string  `json:"who"`
	Sig  string  `json:"sig"`
	RC   *int    `json:"rc"`
}

func (e recorded) word() Word {
	b, err := hex.DecodeString(e.Hex)
	if err != nil || len(b) != WordSize {
		panic("a recorded message of " + strconv.Itoa(len(b)) + " bytes")
	}
	w, _ := ParseWord(b)
	return w
}

// syncBytes is what senders said on each sync connection.
func (r recording) syncBytes() map[int][]byte {
	out := map[int][]byte{}
	for _, e := range r.events {
		if e.Kind == "sync" && e.Dir == "s>r" && e.Hex != "" {
			out[e.Conn] = e.word().Append(out[e.Conn])
		}
	}
	return out
}

// recordings returns all of them, sorted by name.
func recordings(t testing.TB) []recording {
	t.Helper()
	paths, err := filepath.Glob("testdata/transcripts/*.jsonl")
	if err != nil || len(paths) != 30 {
		t.Fatalf("%d recordings found (%v)", len(paths), err)
	}
	var out []recording
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(p), ".jsonl")}
		in := bufio.NewScanner(f)
		for n := 0; in.Scan(); n++ {
			into := any(&r.meta)
			if n > 0 {
				r.events = append(r.events, recorded{})
				into = &r.events[n-1]
			}
			if err := json.Unmarshal(in.Bytes(), into); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
		if err := in.Err(); err != nil || len(r.events) == 0 {
			t.Fatalf("%s: nothing read (%v)", p, err)
		}
		f.Close()
		out = append(out, r)
	}
	return out
}

// configOf reads a recorded command line; those of the recordings have separate short options.
func configOf(t testing.TB, command string) (Config, bool) {
	t.Helper()
	c := Config{}
	sender := false
	words := strings.Fields(command)[1:]
	value := func(i *int) int {
		*i++
		n, err := strconv.Atoi(words[*i])
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return n
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.HasPrefix(w, "-s"):
			sender, c.Host = true, "127.0.0.1"
			if w == "-s" {
				i++
			}
		case strings.HasPrefix(w, "-r"):
			if w == "-r" {
				i++
			}
		case w == "-6":
			c.Family = 6
		case w == "-P":
			c.Ports = value(&i)
		case w == "-n":
			c.Threads = value(&i)
		case w == "-l":
			c.Conns = value(&i)
		case w == "-b":
			c.BlockSize = value(&i)
		case w == "-t":
			n := value(&i)
			c.Duration, c.Endless = time.Duration(n)*time.Second, n == 0
		case w == "-W":
			c.Warmup = time.Duration(value(&i)) * time.Second
		case w == "-C":
			c.Cooldown = time.Duration(value(&i)) * time.Second
		case w == "-N":
			c.NoSync = true
		case w == "-M":
			c.Multi = true
		case w == "-L":
			c.Last = true
		case w == "-u":
			c.Transport = plan.UDP
		case w == "-H":
		default:
			t.Fatalf("%s: what is %s?", command, w)
		}
	}
	if c.Family == 6 {
		c.Host = "::1"
	}
	return c, sender
}
