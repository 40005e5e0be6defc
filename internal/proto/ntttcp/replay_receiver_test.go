package ntttcp

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// expectation is what our receiver makes of a recorded session: the codes of its runs' errors
// ("" = none) and where its answers differ from the original's, by sync connection and place.
type expectation struct {
	runs    []string
	streams []int
	// answers replaces a recorded answer: conn → index → word; 0 = none comes.
	answers map[int]map[int]Word
	notice  string
	told    string // a milestone
	several bool   // for several senders (-M): as a real receiver in all respects
}

// receiverExpectations has a row for every recording.
var receiverExpectations = map[string]expectation{
	"01-default-sync-tcp":            {runs: []string{""}, streams: []int{4}},
	"02-multi-client-2":              {runs: []string{""}, streams: []int{2}, answers: map[int]map[int]Word{3: {3: 0}}},
	"03-nosync-tcp":                  {runs: []string{""}, streams: []int{2}},
	"04-sync-udp":                    {runs: []string{""}, streams: []int{1}},
	"05-nosync-udp":                  {runs: []string{"*"}, streams: []int{1}}, // the original's clock began a second before
	"06-receiver-busy":               {runs: []string{""}, streams: []int{1}},
	"07-sender-ctrl-c":               {runs: []string{"sender-interrupted"}, streams: []int{1}},
	"08-receiver-ctrl-c":             {runs: []string{"interrupted"}, streams: []int{1}},
	"09-sender-killed":               {runs: []string{"peer-vanished"}, streams: []int{1}},
	"10-sender-shorter":              {runs: []string{""}, streams: []int{1}, notice: ""},
	"11-receiver-shorter":            {runs: []string{""}, streams: []int{1}, told: result.MilestoneCycle},
	"12-warmup-cooldown":             {runs: []string{""}, streams: []int{1}, told: result.MilestoneCycle},
	"13-continuous-sender":           {runs: []string{""}, streams: []int{1}, told: result.MilestoneCycle},
	"14-hold-two-tests":              {runs: []string{"", ""}, streams: []int{1, 1}},
	"15-multi-client-interrupt":      {runs: []string{"sender-interrupted"}, streams: []int{2}, answers: map[int]map[int]Word{3: {3: 0}}},
	"16-multi-client-warmup":         {runs: []string{""}, streams: []int{2}, answers: map[int]map[int]Word{3: {3: 0}}},
	"17-fewer-sender-ports":          {runs: []string{""}, streams: []int{1}},
	"18-more-sender-ports":           {},
	"19-nosync-sender-sync-receiver": {runs: []string{""}, streams: []int{1}},
	"20-sync-sender-nosync-receiver": {},
	"21-L-without-M":                 {runs: []string{"peer-vanished"}, streams: []int{1}, answers: map[int]map[int]Word{1: {2: WordStart}}, notice: "last-client-alone"},
	"22-time-69-is-E":                {runs: []string{""}, streams: []int{1}, answers: map[int]map[int]Word{1: {1: 69}}, told: result.MilestoneCycle},
	"23-time-76-is-L":                {runs: []string{""}, streams: []int{1}, answers: map[int]map[int]Word{1: {1: 76}}, told: result.MilestoneCycle},
	"24-time-82-is-R":                {runs: []string{""}, streams: []int{1}, answers: map[int]map[int]Word{1: {1: 82}}, told: result.MilestoneCycle},
	"25-time-88-is-X":                {runs: []string{""}, streams: []int{1}, answers: map[int]map[int]Word{1: {1: 88}}, told: result.MilestoneCycle},
	"26-subconnections":              {runs: []string{""}, streams: []int{6}},
	"27-tcp-ipv6":                    {runs: []string{""}, streams: []int{1}},
	"28-v134-both":                   {runs: []string{""}, streams: []int{1}},
	"29-v140-sender-v143-receiver":   {runs: []string{""}, streams: []int{1}},
	"30-v134-sender-v143-receiver":   {runs: []string{""}, streams: []int{1}},
}

// TestReceiverReplays plays each recorded sender against our receiver.
func TestReceiverReplays(t *testing.T) {
	for _, rec := range recordings(t) {
		t.Run(rec.name, func(t *testing.T) {
			t.Parallel()
			want, ok := receiverExpectations[rec.name]
			if !ok {
				t.Fatal("no expectation")
			}
			replaySenders(t, rec, want)
		})
	}
}

// scripted is one recorded connection, played.
type scripted struct {
	nc      net.Conn
	said    Word // last
	answers int
	writing chan struct{} // closed when the writer is gone; nil = none writes
}

// flood writes data until the connection ends.
func (s *scripted) flood(payload byte) {
	s.writing = make(chan struct{})
	go func() {
		defer close(s.writing)
		buf := make([]byte, 4<<10)
		for i := range buf {
			buf[i] = payload
		}
		for {
			if _, err := s.nc.Write(buf); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
}

func (s *scripted) close() {
	_ = s.nc.Close()
	if s.writing != nil {
		<-s.writing
	}
}

// inOrder are the events as a sender without a relay makes them: since 1.4 its connections are up
// before it says R; the relay accepted some of them later. The recorded receiver's own goings-on
// are left out.
func (r recording) inOrder() []recorded {
	late := strings.HasPrefix(r.meta.SenderVersion, "1.3") || r.name == "29-v140-sender-v143-receiver"
	var out []recorded
	answers := map[int]int{} // of each sync connection
	agreed := map[int]bool{} // places of the answers to a time: it may have the value of an R
	for _, e := range r.events {
		at := len(out)
		if e.Kind == "sync" && e.Dir == "r>s" && e.Hex != "" {
			answers[e.Conn]++
			agreed[at] = answers[e.Conn] == 2
		}
		if e.Kind == "data" && e.Ev == "open" && !late {
			for at > 0 {
				p := out[at-1]
				if agreed[at-1] || p.Kind == "sync" && p.Dir == "r>s" && (p.word() != WordStart && p.word() != WordWait) || p.Ev == "open" && p.Kind != "" || p.Ev == "exit" {
					break
				}
				at--
			}
		}
		out = append(out[:at], append([]recorded{e}, out[at:]...)...)
	}
	return out
}

func replaySenders(t *testing.T, rec recording, want expectation) {
	c, sender := configOf(t, rec.meta.Receiver)
	if sender {
		t.Fatal("the receiver sends")
	}
	c.OneOff = !strings.Contains(rec.meta.Receiver, "-H")
	c.Exclusive = true
	want.several = c.Multi
	f := serve(t, c, nil)
	conns := map[int]*scripted{}
	closeAll := func() {
		for _, s := range conns {
			s.close()
		}
	}
	defer closeAll()
	began, started, starts, rebase := time.Now(), 0.0, 0, false
	for _, e := range rec.inOrder() {
		// Sequence counts below half a second of the recording; beyond, its time does.
		if e.T > 0.5 && rebase && len(conns) > 1 {
			rebase = false
			starts++
			// The sender's clock starts with the receiver's.
			until(t, "the test's start", func() bool {
				n := 0
				for _, r := range f.tests() {
					if r.has(result.KindStart) {
						n++
					}
				}
				return n >= starts
			})
			began = time.Now().Add(-time.Duration(started * float64(beat)))
		}
		if e.T > 0.5 {
			time.Sleep(time.Until(began.Add(time.Duration(e.T * float64(beat)))))
		}
		s := conns[e.Conn]
		switch {
		case e.Ev == "open" || e.Ev == "first":
			at := f.at(e.Port)
			if !at.IsValid() {
				continue // as refused
			}
			network := "tcp"
			if e.Kind == "udp" {
				network = "udp"
			}
			nc, err := net.Dial(network, at.String())
			if err != nil {
				t.Fatalf("%.3f: %s connection %d: %v", e.T, e.Kind, e.Conn, err)
			}
			conns[e.Conn] = &scripted{nc: nc}
		case e.Kind == "sync" && e.Hex != "" && e.Dir == "s>r":
			if e.word() == WordState && starts > 0 && strings.Contains(rec.meta.Receiver, "-H") {
				f.finished(t, starts-1) // so that its answer is "finished"
			}
			s.said = e.word()
			_, _ = s.nc.Write(s.said.Append(nil)) // a receiver that is gone shows in its answers
		case e.Kind == "sync" && e.Hex != "":
			expectAnswer(t, e, s, want)
			if e.word() == WordStart && s.said != 0 && (s.said == WordLast || !c.Multi) {
				rebase, started, s.said = true, e.T, 0
			}
		case e.Hex != "" && s.writing == nil:
			s.flood(map[string]byte{"data": 'A', "udp": 'B'}[e.Kind])
		case e.Ev == "eof" && e.Dir == "s>r" || e.Kind == "sync" && e.Ev == "reset" && e.Dir == "s>r":
			if s != nil {
				s.close()
			}
		case e.Ev == "exit" && strings.HasPrefix(e.Who, "sender") && len(rec.meta.Senders) == 1:
			closeAll()
		case e.Ev == "signal" && e.Who == "receiver":
			f.stop(errInterrupt)
		}
	}
	if len(want.runs) > 0 {
		closeAll()
	}
	for n, code := range want.runs {
		run := f.finished(t, n)
		got := ""
		if run.Err != nil {
			got = run.Err.Code
		}
		if got != code && code != "*" {
			t.Errorf("run %d ends with %q (%+v), want %q", n, got, run.Err, code)
		}
		if len(run.Streams) != want.streams[n] {
			t.Errorf("run %d has %d streams, want %d", n, len(run.Streams), want.streams[n])
		}
		if bytesOf(run, result.Server) == 0 && rec.name != "21-L-without-M" {
			t.Errorf("run %d counted nothing", n)
		}
		checkRows(t, run, result.Server)
		if want.told != "" && f.tests()[n].told(want.told) == 0 {
			t.Errorf("run %d does not tell %q", n, want.told)
		}
		if want.notice != "" && f.tests()[n].notice(want.notice) == nil {
			t.Errorf("run %d has no notice %q: %+v", n, want.notice, run.Notices)
		}
	}
	if c.OneOff && len(want.runs) > 0 {
		err := <-f.served // it exits by itself, whatever the sender does
		f.served <- err
	}
	if n := len(f.tests()); n != len(want.runs) {
		t.Errorf("%d runs, want %d", n, len(want.runs))
	}
}

// expectAnswer reads the receiver's next answer, unless ours leaves it out.
func expectAnswer(t *testing.T, e recorded, s *scripted, want expectation) {
	t.Helper()
	i := s.answers
	s.answers++
	w := e.word()
	if s.said == WordState && (w == StateIdle || w == StateFinished) && !want.several {
		w = StateFullbore // the one intended difference, which real senders do not look at
	}
	if other, ok := want.answers[e.Conn][i]; ok {
		if w = other; w == 0 {
			return
		}
	}
	_ = s.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	var b [WordSize]byte
	if _, err := io.ReadFull(s.nc, b[:]); err != nil {
		t.Fatalf("%.3f: connection %d, answer %d: %v; want %v", e.T, e.Conn, i, err, w)
	}
	if got, _ := ParseWord(b[:]); got != w {
		t.Errorf("%.3f: connection %d, answer %d is %v, want %v", e.T, e.Conn, i, got, w)
	}
}
