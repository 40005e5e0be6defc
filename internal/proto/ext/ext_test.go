package ext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// TestForwarder: one row waits at most, the newest; few notices are never lost; at
// most ten a second; the last row always goes.
func TestForwarder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []string
		var at []time.Duration
		start := time.Now()
		hold := make(chan struct{})
		f := NewForwarder(FrameEvent, func(b []byte) error {
			<-hold
			frame, doc, n, err := Decode(b, MaxFrame)
			if err != nil || n != len(b) || frame != FrameEvent {
				return fmt.Errorf("%v %d %w", frame, n, err)
			}
			var ef EventFrame
			if err := json.Unmarshal(doc, &ef); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ef.Event.Interval != nil:
				sent = append(sent, fmt.Sprintf("row %d dropped %d", ef.Event.Interval.Index, ef.Dropped))
			case ef.Event.Notice != nil:
				sent = append(sent, ef.Event.Notice.Code)
			}
			at = append(at, time.Since(start))
			return nil
		})
		row := func(i int) {
			f.Event(result.Event{Kind: result.KindInterval, Interval: &result.Interval{Index: i}})
		}
		row(0)
		synctest.Wait() // it is being sent, and stuck
		for i := 1; i <= 5; i++ {
			row(i)
		}
		f.Event(result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "n1"}})
		f.Event(result.Event{Kind: result.KindNotice, Notice: &result.Notice{Code: "n2"}})
		f.Event(result.Event{Kind: result.KindFinish})
		close(hold)
		synctest.Wait()
		want := []string{"row 0 dropped 0", "n1", "n2", "row 5 dropped 4"}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		sent, at = nil, nil
		for i := range 100 {
			row(100 + i)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if n := len(sent); n < 9 || n > 10+frameBurst {
			t.Errorf("%d frames in a second", n)
		}
		row(1000)
		f.Stop()
		if last := sent[len(sent)-1]; !strings.HasPrefix(last, "row 1000 ") {
			t.Errorf("the last row did not go: %s", last)
		}
		f.Stop()
		if f.Dropped() < 80 {
			t.Errorf("%d dropped", f.Dropped())
		}
	})
}

// TestForwarderAbort: a peer that does not read does not hold the end of a test.
func TestForwarderAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		f := NewForwarder(FrameEvent, func([]byte) error { <-stuck; return errors.New("broken") })
		f.Event(result.Event{Kind: result.KindInterval, Interval: &result.Interval{}})
		synctest.Wait()
		broke := 0
		f.Abort(100*time.Millisecond, func() { broke++; close(stuck) })
		if broke != 1 {
			t.Errorf("the write was broken %d times", broke)
		}
		f.Abort(time.Second, func() { t.Error("again") })
		var none *Forwarder
		none.Stop()
		none.Abort(0, nil)
		if none.Dropped() != 0 {
			t.Error("nil")
		}
	})
}

func TestForWire(t *testing.T) {
	row := result.Interval{}
	for i := range 300 {
		row.Streams = append(row.Streams, result.StreamInterval{ID: i, Bytes: int64((i * 7919) % 300)})
	}
	ev := result.Event{Kind: result.KindInterval, Interval: &row}
	got := ForWire(ev).Interval
	if len(got.Streams) != WorstStreams || len(row.Streams) != 300 {
		t.Fatalf("%d streams, %d left", len(got.Streams), len(row.Streams))
	}
	for i, s := range got.Streams {
		if s.Bytes >= WorstStreams || i > 0 && got.Streams[i-1].ID >= s.ID {
			t.Errorf("%+v is not among the worst, in order", s)
		}
	}
	row.Streams = row.Streams[:128]
	if got := ForWire(ev).Interval; len(got.Streams) != 128 {
		t.Errorf("of 128 streams %d are left", len(got.Streams))
	}
}

func TestFromWire(t *testing.T) {
	for name, tc := range map[string]struct {
		ev   *result.Event
		want bool
	}{
		"nothing":          {nil, false},
		"no content":       {&result.Event{Kind: result.KindInterval}, false},
		"row":              {&result.Event{Kind: result.KindInterval, Interval: &result.Interval{}}, true},
		"too many streams": {&result.Event{Kind: result.KindInterval, Interval: &result.Interval{Streams: make([]result.StreamInterval, 129)}}, false},
		"a head":           {&result.Event{Kind: result.KindStart, Head: &result.Run{}}, false},
		"an error":         {&result.Event{Kind: result.KindError, Err: &result.Error{}}, false},
		"notice":           {&result.Event{Kind: result.KindNotice, Notice: &result.Notice{Text: "a\x1b[31mb\nc", Code: "x\x00"}}, true},
		"host":             {&result.Event{Kind: result.KindHost, Host: &result.Host{Name: "a\x1bb", NIC: &result.NIC{Name: "\x07e"}, Tool: &result.Tool{Name: "\x07"}}}, true},
		"settings": {&result.Event{Kind: result.KindHost, Host: &result.Host{Settings: &result.Facts{
			OS: "\x1b", Congestion: "\x07", Governor: "\x1b", NIC: "\x07", Driver: "\x1b", Qdisc: "\x07", NearCPUs: "\x1b", Duplex: "\x07", Kind: "\x1b",
			Virtual: "\x07", ClockSource: "\x1b", Autotuning: "\x07", Available: []string{"\x1b"}, Off: make([]string, 1000),
		}}}, true},
		"from another end?": {&result.Event{Kind: result.KindInterval, End: result.Client, Interval: &result.Interval{End: result.Client}}, true},
	} {
		got, ok := FromWire(tc.ev, result.Server)
		if ok != tc.want {
			t.Errorf("%s: %v", name, ok)
			continue
		}
		if !ok {
			continue
		}
		doc, err := json.Marshal(got)
		if err != nil || bytes.Contains(doc, []byte(`\u001b`)) || bytes.Contains(doc, []byte(`\u0007`)) || bytes.Contains(doc, []byte(`\u0000`)) {
			t.Errorf("%s: %s %v", name, doc, err)
		}
		if got.Host != nil && got.Host.Settings != nil && len(got.Host.Settings.Off) > mostNames {
			t.Errorf("%s: %d names", name, len(got.Host.Settings.Off))
		}
		if got.End != result.Server || got.Interval != nil && got.Interval.End != result.Server {
			t.Errorf("%s: the end is %s", name, got.End)
		}
	}
}

// FuzzFrames: no frame of a peer crashes who reads it.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		`{"event":{"kind":"interval","interval":{"streams":[{"id":1}]}},"dropped":3}`, `{"stop":{"why":"x"}}`, `{"steer":{"rate_bps":-1}}`,
		`{"facts":{"name":"x","nic":{"name":"y"}}}`, `{"v":1,"host":{"settings":{"tcp_rmem":[1,2,3],"congestion_available":["x"],"offloads_off":null}}}`, `{"v":1,"features":[],"host":{},"clock":{}}`, `{"position":1,"estimate_s":null}`, `[]`, `{"event":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e EventFrame
		if json.Unmarshal(doc, &e) == nil {
			if ev, ok := FromWire(e.Event, result.Server); ok {
				if _, err := json.Marshal(ForWire(ev)); err != nil {
					t.Fatal(err)
				}
				new(result.Folder).Event(ev)
			}
		}
		var c ClientFrame
		if json.Unmarshal(doc, &c) == nil && c.Facts != nil {
			PrintableHost(c.Facts)
		}
		DecodeServerHello(doc)
		DecodeClientHello(doc, time.Hour, time.Minute)
	})
}

// TestResults: results of any size come through whole, in frames that are not too long.
func TestResults(t *testing.T) {
	bps := int64(5)
	for _, n := range []int{0, 1, 3000} {
		r := Results{
			CPU: &result.CPU{Total: 3, Congestion: "cubic"}, Machine: &result.HostTotal{Seconds: 1, Cores: 2},
			Dropped: 4, Err: &result.Error{Code: "c", Text: "t"}, Whole: true,
		}
		for i := range n {
			r.Streams = append(r.Streams, StreamResult{
				ID: i + 1, Total: result.Total{Bytes: int64(i), End: 2, Packets: &bps}, Datagrams: &bps,
				TCP: &result.TCPSummary{Congestion: "bbr", Last: result.TCPInfo{DeliveryRate: &bps}},
				UDP: &result.UDPStream{Sent: &result.UDPSent{Packets: 5}},
			})
		}
		frames, err := r.Frames()
		if err != nil || n == 3000 && len(frames) < 2 {
			t.Fatalf("%d streams: %d frames, %v", n, len(frames), err)
		}
		var got Results
		for i, b := range frames {
			f, doc, size, err := Decode(b, MaxFrame)
			if f != FrameResults || size != len(b) || err != nil {
				t.Fatalf("%v %d %v", f, size, err)
			}
			done, err := got.Add(doc, n)
			if err != nil || done != (i == len(frames)-1) {
				t.Fatalf("frame %d of %d: %v, %v", i, len(frames), done, err)
			}
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("%d streams (-want +got)\n%s", n, diff)
		}
	}
}

// TestResultsUnsayable: what JSON cannot say costs the summary of that stream, not the results.
func TestResultsUnsayable(t *testing.T) {
	inf := math.Inf(1)
	r := Results{Streams: []StreamResult{
		{ID: 1, Total: result.Total{Bytes: 7}, TCP: &result.TCPSummary{BusyShare: &inf}},
		{ID: 2, Total: result.Total{Bytes: 8}, TCP: &result.TCPSummary{Reorder: 1}},
	}}
	frames, err := r.Frames()
	if err != nil || len(frames) != 1 {
		t.Fatal(err)
	}
	var got Results
	if _, err := got.Add(frames[0][HeaderSize:], 2); err != nil {
		t.Fatal(err)
	}
	if got.Streams[0].Total.Bytes != 7 || got.Streams[0].TCP != nil || got.Streams[1].TCP == nil || r.Streams[0].TCP == nil {
		t.Errorf("%+v", got)
	}
	r.Streams[0].Total.End = inf
	if _, err := r.Frames(); err == nil {
		t.Error("an infinite end is told")
	}
}

func TestResultsNonsense(t *testing.T) {
	for name, doc := range map[string]string{
		"no JSON": `{`, "negative bytes": `{"streams":[{"id":1,"total":{"bytes":-1}}]}`, "an end before the start": `{"streams":[{"id":1,"total":{"start_s":2,"end_s":1}}]}`,
		"an end beyond all": `{"streams":[{"id":1,"total":{"end_s":1e300}}]}`, "more than there are": `{"streams":[{},{},{}]}`,
		"no end of frames": `{"more":true}`, "negative packets": `{"streams":[{"id":1,"total":{"packets":-1}}]}`,
		"negative datagrams": `{"streams":[{"id":1,"datagrams":-1}]}`, "negative jitter": `{"streams":[{"id":1,"total":{"jitter_s":-1}}]}`,
		"negative sent": `{"streams":[{"id":1,"udp":{"sent":{"packets":-1}}}]}`, "negative received": `{"streams":[{"id":1,"udp":{"received":{"late":-1}}}]}`,
	} {
		var r Results
		if done, err := r.Add([]byte(doc), 2); err == nil || done {
			t.Errorf("%s: %v", name, done)
		}
	}
	var r Results
	done, err := r.Add([]byte(`{"events_dropped":-3,"error":{"code":"a\u0007","text":"b\u001b"},"cpu":{"congestion":"c\u0001"},"host_total":{"cores":-1},
		"streams":[{"id":1,"tcp":{"congestion":"d\u0002"},"udp":{"received":{"stamps":"e\u0003"},"loss":{}}}]}`), 2)
	if !done || err != nil {
		t.Fatal(err)
	}
	if r.Dropped != 0 || r.Err.Code != "a" || r.Err.Text != "b" || r.CPU.Congestion != "c" || r.Machine != nil ||
		r.Streams[0].TCP.Congestion != "d" || r.Streams[0].UDP.Received.Stamps != "e" || r.Streams[0].UDP.Loss != nil {
		t.Errorf("%+v", r)
	}
}

// TestWrite: no piece is longer than what passes everywhere.
func TestWrite(t *testing.T) {
	var sizes []int
	var all []byte
	w := writer(func(b []byte) (int, error) {
		sizes = append(sizes, len(b))
		all = append(all, b...)
		return len(b), nil
	})
	in := bytes.Repeat([]byte("0123456789"), 300)
	if err := Write(w, in); err != nil || !bytes.Equal(all, in) || len(sizes) != 3 || sizes[0] != 1200 {
		t.Errorf("%v: %v", sizes, err)
	}
	broken := errors.New("broken")
	n := 0
	if err := Write(writer(func([]byte) (int, error) { n++; return 0, broken }), in); !errors.Is(err, broken) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

type writer func([]byte) (int, error)

func (f writer) Write(b []byte) (int, error) { return f(b) }

// TestGate: what a Forwarder sends passes, a flood does not.
func TestGate(t *testing.T) {
	now := time.Unix(0, 0)
	var g Gate
	for i := range 1000 {
		if !g.Pass(now) {
			t.Fatalf("event %d of a Forwarder is held up", i)
		}
		now = now.Add(time.Second / framesPerSecond)
	}
	passed := 0
	for range 10_000 {
		if g.Pass(now) {
			passed++
		}
	}
	if passed > gateBurst {
		t.Errorf("%d of a flood pass", passed)
	}
	if g.Pass(now.Add(-time.Hour)) {
		t.Error("a clock that goes back opens it")
	}
}

// FuzzResults: no results of a peer crash who reads them, and what is taken can be kept as JSON.
func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"streams":[{"id":1,"total":{"bytes":5,"end_s":1},"tcp":{},"udp":{"sent":{}}}],"cpu":{},"host_total":{"packet_counts":{}},"error":{}}`))
	f.Add([]byte(`{"more":true,"streams":[{}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var r Results
		for range 2 {
			done, err := r.Add(doc, 3)
			if err != nil {
				return
			}
			if _, err := r.Frames(); done && err != nil {
				t.Fatal(err)
			}
		}
	})
}
