package iperf3

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestBothEndsLive: the client's run holds the rows, facts and notices of both ends, and
// the server's run those of the client.
func TestBothEndsLive(t *testing.T) {
	for _, dir := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
		t.Run(string(dir), func(t *testing.T) {
			facts := &result.Host{Name: "secret", OS: "linux", Release: "6.1", Cores: 2, CPUModel: "secret", Tool: &result.Tool{Name: "fullbore", Version: "9"}}
			s := &Server{
				Policy: plan.Serve{Interval: 100 * time.Millisecond}, Facts: facts,
				Tool: result.Tool{Name: "fullbore", Version: "9"},
				Host: func() *result.HostSample { return &result.HostSample{StealMax: 0.25} },
			}
			ts := startServer(t, s)
			c := ts.client(plan.Plan{Duration: 350 * time.Millisecond, Interval: 100 * time.Millisecond, Bitrate: 20e6, Direction: dir, Streams: 2})
			c.Facts = &result.Host{Name: "client-host", Cores: 4}
			run, err := runClient(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if h := run.Hosts.Server; h == nil || h.Cores != 2 || h.OS != "linux" || h.Name != "" || h.CPUModel != "" {
				t.Errorf("a stranger learns %+v", h)
			}
			if !run.Wire.Extension || run.Wire.PeerVersion != "9" || !hasNotice(run, "version-differs") {
				t.Errorf("wire %+v, notices %+v", run.Wire, run.Notices)
			}
			srv := ts.run(0)
			if h := srv.Hosts.Client; h == nil || h.Name != "client-host" {
				t.Errorf("the server knows of the client %+v", h)
			}
			for name, r := range map[string]*result.Run{"client": run, "server": srv} {
				for _, e := range []result.End{result.Client, result.Server} {
					rows := r.Intervals(e)
					if len(rows) < 3 {
						t.Errorf("%s: %d rows of the %s", name, len(rows), e)
						continue
					}
					sums := map[int]int64{}
					for i, row := range rows {
						if row.Index != i {
							t.Errorf("%s: row %d of the %s has index %d", name, i, e, row.Index)
						}
						for _, st := range row.Streams {
							sums[st.ID] += st.Bytes
						}
						if e == result.Server && (row.Host == nil || row.Host.StealMax != 0.25) {
							t.Errorf("%s: row of the server without its host", name)
						}
					}
					for _, st := range r.Streams {
						if total := own(&st, e); total == nil || total.Bytes != sums[st.ID] {
							t.Errorf("%s: the %s's rows of stream %d add up to %d, its total is %+v", name, e, st.ID, sums[st.ID], total)
						}
					}
				}
			}
			for i, st := range run.Streams {
				o := srv.Streams[i]
				if st.RemoteTCP == nil || o.TCP == nil || st.RemoteTCP.Last.MSS != o.TCP.Last.MSS {
					t.Errorf("stream %d: the server's TCP_INFO did not arrive: %+v", st.ID, st.RemoteTCP)
				}
			}
		})
	}
}

// TestFactsFor: who learns what of a server's machine.
func TestFactsFor(t *testing.T) {
	full := &result.Host{Name: "n", OS: "linux", Cores: 2}
	for name, tc := range map[string]struct {
		policy plan.Serve
		user   string
		want   string
	}{
		"stranger": {plan.Serve{}, "", ""}, "full facts": {plan.Serve{FullFacts: true}, "", "n"}, "logged in": {plan.Serve{}, "u", "n"},
	} {
		x := &session{s: &Server{Policy: tc.policy, Facts: full}, user: tc.user}
		if got := x.facts(); got.Name != tc.want || got.Cores != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestManyStreams: above 128 streams only two fullbores can go; all are counted, rows
// over the wire hold the worst.
func TestManyStreams(t *testing.T) {
	ts := startServer(t, &Server{Policy: plan.Serve{Interval: 100 * time.Millisecond}})
	c := ts.client(plan.Plan{Streams: 500, Duration: 300 * time.Millisecond, Interval: 100 * time.Millisecond, Bitrate: 1e6, BlockSize: 1000})
	run, err := runClient(t, c)
	if err != nil {
		t.Fatal(err)
	}
	srv := ts.run(0)
	if len(run.Streams) != 500 || len(srv.Streams) != 500 {
		t.Fatalf("%d and %d streams", len(run.Streams), len(srv.Streams))
	}
	for i, s := range run.Streams {
		o := srv.Streams[i]
		if s.ID != o.ID || s.Local != o.Remote || s.Remote != o.Local {
			t.Fatalf("stream %d: %+v here is %+v there", i, s.Local, o.Remote)
		}
		if s.Receiver.Bytes != o.Receiver.Bytes {
			t.Errorf("stream %d: told %d, counted %d", i, s.Receiver.Bytes, o.Receiver.Bytes)
		}
	}
	for _, row := range run.Intervals(result.Server) {
		if len(row.Streams) != worstStreams || len(row.Sums) != 1 {
			t.Errorf("a row of the server has %d streams, %d sums", len(row.Streams), len(row.Sums))
		}
	}
	if rows := run.Intervals(result.Client); len(rows[0].Streams) != 500 {
		t.Errorf("a row of our own has %d streams", len(rows[0].Streams))
	}

	p := scriptServer(t, func(p *rawPeer, _ func() net.Conn) {
		p.get(CookieSize)
		p.nc.Write([]byte{9})
		doc, _ := p.getDocument()
		if !bytes.Contains(doc, []byte(`"parallel":128`)) || !bytes.Contains(doc, []byte(`"streams":500`)) {
			t.Errorf("parameters %s", doc)
		}
		p.nc.Write([]byte{10})
		io.Copy(io.Discard, p.nc)
	})
	p.Streams, p.Extension = 500, ""
	_, err = runClient(t, &Client{Plan: p})
	wantError(t, err, codeNumStreams, "plan")
}

// TestIndexedStreams: the index, not the order of arrival, says which stream it is.
func TestIndexedStreams(t *testing.T) {
	ts := startServer(t, &Server{})
	p := dialRaw(t, ts)
	p.greet()
	p.document(`{"tcp":true,"parallel":3,"time":0,"fullbore":{"v":1,"version":"x","features":["index"]}}`)
	p.want(FrameHello)
	hello, _ := p.getDocument()
	var h ServerHello
	if err := json.Unmarshal(hello, &h); err != nil || h.V != ExtVersion || len(h.Nonce) != 16 || h.Test == "" || h.Clock.Mono <= 0 || h.Clock.Wall <= 0 {
		t.Errorf("hello %s: %v", hello, err)
	}
	p.want(StateCreateStreams)
	open := func(i uint32) net.Conn {
		nc, err := net.Dial("tcp", ts.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(10 * time.Second))
		nc.Write(binary.BigEndian.AppendUint32(bytes.Clone(p.cookie[:]), i))
		return nc
	}
	if got, _ := io.ReadAll(open(3)); !bytes.Equal(got, []byte{0xff}) {
		t.Errorf("index 3 of 3: got %x", got)
	}
	// Of two connections with one index either may be read first: the later one is closed.
	twice := []net.Conn{open(2), open(2)}
	closed := make(chan int, len(twice))
	for i, nc := range twice {
		go func() {
			if got, _ := io.ReadAll(nc); len(got) != 0 {
				t.Errorf("index 2 twice: got %x", got)
			}
			closed <- i
		}()
	}
	conns := map[int]net.Conn{0: open(0), 2: twice[1-<-closed]}
	conns[1] = open(1)
	p.want(StateTestStart, StateTestRunning)
	for i, nc := range conns {
		nc.Write(make([]byte, 1000*(i+1)))
	}
	p.write(12)
	run := ts.run(0)
	for i, s := range run.Streams {
		if s.Remote.Port != conns[i].LocalAddr().(*net.TCPAddr).Port {
			t.Errorf("stream %d is port %d, want %v", i, s.Remote.Port, conns[i].LocalAddr())
		}
	}
}

// TestSteer: a running test changes its rate, also what the server sends.
func TestSteer(t *testing.T) {
	for _, dir := range []plan.Direction{plan.Up, plan.Down} {
		ts := startServer(t, &Server{})
		c := ts.client(plan.Plan{Bytes: 4 << 20, Bitrate: 100e3, BlockSize: 1000, Direction: dir})
		rec := newRecorder()
		rec.on = func(e result.Event) {
			if e.Kind == result.KindStart {
				go func() {
					eventually(t, "the test does not run", func() bool {
						c.mu.Lock()
						defer c.mu.Unlock()
						return c.run != nil
					})
					c.Steer(0)
				}()
			}
		}
		// At the first rate it would take five minutes.
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		if err := c.Run(ctx, rec); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	new(Client).Steer(5) // without a test: nothing
}

// TestFrameSender: one row waits at most, the newest; few notices are never lost; at
// most ten a second; the last row always goes.
func TestFrameSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []string
		var at []time.Duration
		start := time.Now()
		hold := make(chan struct{})
		f := newFrameSender(FrameEvent, func(b []byte) error {
			<-hold
			m, n, err := decodeMessage(b, limits{frame: MaxFrame}, true, false)
			if err != nil || n != len(b) || m.State != FrameEvent {
				return fmt.Errorf("%v %d %w", m.State, n, err)
			}
			var ef EventFrame
			if err := json.Unmarshal(m.Doc, &ef); err != nil {
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
		f.stop()
		if last := sent[len(sent)-1]; !strings.HasPrefix(last, "row 1000 ") {
			t.Errorf("the last row did not go: %s", last)
		}
		f.stop()
		if f.dropped() < 80 {
			t.Errorf("%d dropped", f.dropped())
		}
	})
}

// TestFrameSenderAbort: a peer that does not read does not hold the end of a test.
func TestFrameSenderAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		f := newFrameSender(FrameEvent, func([]byte) error { <-stuck; return errors.New("broken") })
		f.Event(result.Event{Kind: result.KindInterval, Interval: &result.Interval{}})
		synctest.Wait()
		broke := 0
		f.abort(100*time.Millisecond, func() { broke++; close(stuck) })
		if broke != 1 {
			t.Errorf("the write was broken %d times", broke)
		}
		f.abort(time.Second, func() { t.Error("again") })
		var none *frameSender
		none.stop()
		none.abort(0, nil)
		if none.dropped() != 0 {
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
	got := forWire(ev).Interval
	if len(got.Streams) != worstStreams || len(row.Streams) != 300 {
		t.Fatalf("%d streams, %d left", len(got.Streams), len(row.Streams))
	}
	for i, s := range got.Streams {
		if s.Bytes >= worstStreams || i > 0 && got.Streams[i-1].ID >= s.ID {
			t.Errorf("%+v is not among the worst, in order", s)
		}
	}
	row.Streams = row.Streams[:128]
	if got := forWire(ev).Interval; len(got.Streams) != 128 {
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
		got, ok := fromWire(tc.ev, result.Server)
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
			if ev, ok := fromWire(e.Event, result.Server); ok {
				if _, err := json.Marshal(forWire(ev)); err != nil {
					t.Fatal(err)
				}
				new(result.Folder).Event(ev)
			}
		}
		var c ClientFrame
		if json.Unmarshal(doc, &c) == nil && c.Facts != nil {
			printableHost(c.Facts)
		}
		var h ServerHello
		_ = json.Unmarshal(doc, &h)
		decodeClientHello(doc)
	})
}

// TestSocketNumbers: the numbers that scripts match (spec iperf3-cli §5.6).
func TestSocketNumbers(t *testing.T) {
	for _, tc := range []struct {
		end  result.End
		tr   plan.Transport
		base int
		want []int
	}{
		{result.Client, plan.TCP, 5, []int{5, 7, 9, 11}},
		{result.Server, plan.TCP, 5, []int{5, 8, 10, 12}},
		{result.Client, plan.UDP, 6, []int{6, 8, 10, 12}},
		{result.Server, plan.TCP, 6, []int{6, 9, 11, 13}},
		{result.Server, plan.UDP, 5, []int{5, 6, 9, 11}},
	} {
		for i, want := range tc.want {
			if got := socketNumber(tc.end, tc.tr, tc.base, i); got != want {
				t.Errorf("%s from %d, stream %d: %d, want %d", tc.end, tc.base, i, got, want)
			}
		}
	}
	ids := []int{1, 3, 4, 5, 6}
	for i, want := range ids {
		if got := streamID(i); got != want {
			t.Errorf("id of stream %d: %d, want %d", i, got, want)
		}
	}
}
