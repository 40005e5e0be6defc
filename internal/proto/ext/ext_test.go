package ext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
		"nothing":           {nil, false},
		"no content":        {&result.Event{Kind: result.KindInterval}, false},
		"row":               {&result.Event{Kind: result.KindInterval, Interval: &result.Interval{}}, true},
		"too many streams":  {&result.Event{Kind: result.KindInterval, Interval: &result.Interval{Streams: make([]result.StreamInterval, 129)}}, false},
		"a head":            {&result.Event{Kind: result.KindStart, Head: &result.Run{}}, false},
		"an error":          {&result.Event{Kind: result.KindError, Err: &result.Error{}}, false},
		"notice":            {&result.Event{Kind: result.KindNotice, Notice: &result.Notice{Text: "a\x1b[31mb\nc", Code: "x\x00"}}, true},
		"host":              {&result.Event{Kind: result.KindHost, Host: &result.Host{Name: "a\x1bb", NIC: &result.NIC{Name: "\x07e"}, Tool: &result.Tool{Name: "\x07"}}}, true},
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
		if got.End != result.Server || got.Interval != nil && got.Interval.End != result.Server {
			t.Errorf("%s: the end is %s", name, got.End)
		}
	}
}

// FuzzFrames: no frame of a peer crashes who reads it.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		`{"event":{"kind":"interval","interval":{"streams":[{"id":1}]}},"dropped":3}`, `{"stop":{"why":"x"}}`, `{"steer":{"rate_bps":-1}}`,
		`{"facts":{"name":"x","nic":{"name":"y"}}}`, `{"v":1,"features":[],"host":{},"clock":{}}`, `{"position":1,"estimate_s":null}`, `[]`, `{"event":null}`,
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
