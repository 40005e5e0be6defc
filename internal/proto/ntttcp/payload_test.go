package ntttcp

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestPayload: what a sender sends is the letter of its dialect from the first byte to the last
// (linux §3.6, windows §3.3); a receiver that verifies (-d) lets nothing else pass.
func TestPayload(t *testing.T) {
	for _, c := range []struct {
		windows   bool
		transport plan.Transport
		size      int
		want      byte
	}{
		{false, plan.TCP, 100_000, 'A'},
		{true, plan.TCP, 64 << 10, 'A'},
		{false, plan.UDP, 1400, 'B'},
		{false, plan.UDP, 65507, 'B'},
		{true, plan.UDP, 128, 'A'},
		{true, plan.UDP, 1, 'A'},
	} {
		t.Run(fmt.Sprint(c.windows, c.transport, c.size), func(t *testing.T) {
			t.Parallel()
			cfg := Config{
				Host: "127.0.0.1", Ports: 1, Threads: 1, Transport: c.transport, NoSync: true, Windows: c.windows,
				BlockSize: c.size, Blocks: 20, Duration: 20 * time.Second,
			}
			came := make(chan []byte, 1)
			if c.transport == plan.UDP {
				pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
				if err != nil {
					t.Fatal(err)
				}
				defer pc.Close()
				if err := pc.SetReadBuffer(4 << 20); err != nil {
					t.Fatal(err)
				}
				cfg.Port = pc.LocalAddr().(*net.UDPAddr).Port
				go func() { came <- readAll(pc, c.size) }()
			} else {
				ln, err := net.Listen("tcp4", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
				cfg.Port = ln.Addr().(*net.TCPAddr).Port
				go func() {
					nc, err := ln.Accept()
					if err != nil {
						came <- nil
						return
					}
					defer nc.Close()
					came <- readAll(nc, 0)
				}()
			}
			s := Sender{Config: cfg, Timeouts: Timeouts{Linger: time.Millisecond}}
			if err := s.Run(context.Background(), newRecorder()); err != nil {
				t.Fatal(err)
			}
			got := <-came
			if len(got) != 20*c.size || bytes.Count(got, []byte{c.want}) != len(got) {
				t.Errorf("%d bytes came, %d of them %q; want %d", len(got), bytes.Count(got, []byte{c.want}), c.want, 20*c.size)
			}
		})
	}
}

// readAll reads 20 blocks of size bytes each, or up to the end; nil = a block of another size.
func readAll(nc net.Conn, size int) (all []byte) {
	if err := nc.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil
	}
	buf := make([]byte, 65536)
	for size == 0 || len(all) < 20*size {
		n, err := nc.Read(buf)
		if err != nil {
			break
		}
		if size > 0 && n != size {
			return nil
		}
		all = append(all, buf[:n]...)
	}
	return all
}

// TestTallyRuns: datagrams counted together are counted as if one by one.
func TestTallyRuns(t *testing.T) {
	y := newTally(schedule{}, time.Second, 0, nil, nil)
	y.Start()
	f := datagramFlow{0, netip.MustParseAddrPort("127.0.0.1:9")}
	y.addRun(f, result.Addr{}, 1000, 7)
	y.addRun(f, result.Addr{}, 10, 2)
	y.addRun(f, result.Addr{}, 1, 3) // nudges
	total := y.Finish()
	if len(total.Flows) != 1 || total.Flows[0].Total.Bytes != 7020 || *total.Flows[0].Total.Packets != 9 {
		t.Errorf("%+v", total.Flows)
	}
}

// TestDatagramsVerified: a byte that no sender sends is found in datagrams, too, and said at the end.
func TestDatagramsVerified(t *testing.T) {
	for name, c := range map[string]struct {
		send [][]byte
		code string
	}{
		"Windows":    {[][]byte{bytes.Repeat([]byte{'A'}, 100), bytes.Repeat([]byte{'A'}, 100)}, ""},
		"Linux":      {[][]byte{bytes.Repeat([]byte{'B'}, 100), bytes.Repeat([]byte{'B'}, 100)}, ""},
		"corrupted":  {[][]byte{bytes.Repeat([]byte{'A'}, 100), append(bytes.Repeat([]byte{'A'}, 99), 'x')}, "corrupt"},
		"of neither": {[][]byte{bytes.Repeat([]byte{'x'}, 100), bytes.Repeat([]byte{'x'}, 100)}, "corrupt"},
		"of both":    {[][]byte{bytes.Repeat([]byte{'A', 'B'}, 50), bytes.Repeat([]byte{'A'}, 100)}, "corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Ports: 1, Transport: plan.UDP, Follow: true, Verify: true}, nil)
			nc, err := net.Dial("udp", f.lns.Packets[0].LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			for range 20 {
				for _, b := range c.send {
					if _, err := nc.Write(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			run := f.finished(t, 0)
			got := ""
			if run.Err != nil {
				got = run.Err.Code
			}
			// The first datagram only shows that somebody is there.
			if got != c.code || bytesOf(run, result.Server) != 40*100 {
				t.Errorf("%d bytes, ends with %+v", bytesOf(run, result.Server), run.Err)
			}
		})
	}
}
