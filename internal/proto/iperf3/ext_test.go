package iperf3

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
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
		looked := 0
		x = &session{peer: netip.MustParseAddr("192.0.2.7"), user: tc.user, s: &Server{Policy: tc.policy, Facts: full, FactsTo: func(client netip.Addr) *result.Host {
			looked++
			return &result.Host{Name: "seen by " + client.String(), Cores: 2, Settings: &result.Facts{}}
		}}}
		want := map[bool]int{true: 1}[tc.want != ""] // a stranger's test costs no look, a friend's one
		got := x.facts()
		if again := x.facts(); again.Name != got.Name || looked != want || (got.Settings != nil) != (want == 1) || (got.Name == "seen by 192.0.2.7") != (want == 1) {
			t.Errorf("%s: %+v, looked %d times", name, got, looked)
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
		if len(row.Streams) != ext.WorstStreams || len(row.Sums) != 1 {
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
	var h ext.ServerHello
	if err := json.Unmarshal(hello, &h); err != nil || h.V != ext.Version || len(h.Nonce) != 16 || h.Test == "" || h.Clock.Mono <= 0 || h.Clock.Wall <= 0 {
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
