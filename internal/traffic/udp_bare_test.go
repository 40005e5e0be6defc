package traffic

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// checkBare checks that a receiver without headers tells packets and bytes, and nothing
// that it cannot know.
func checkBare(tb testing.TB, tot Totals, rows []result.Interval) {
	tb.Helper()
	for _, f := range tot.Flows {
		if f.Total.Lost != nil || f.Total.OutOfOrder != nil || f.Total.Jitter != nil || f.Total.OmittedLost != nil || f.UDP != nil {
			tb.Errorf("flow %d knows what no header told: %+v, %+v", f.ID, f.Total, f.UDP)
		}
	}
	for _, iv := range rows {
		for _, s := range iv.Streams {
			if s.Packets == nil || s.Lost != nil || s.OutOfOrder != nil || s.Jitter != nil || s.UDP != nil {
				tb.Errorf("row %d: %+v", iv.Index, s)
			}
		}
		for _, s := range iv.Sums {
			if s.Packets == nil || s.Lost != nil || s.OutOfOrder != nil || s.Jitter != nil {
				tb.Errorf("sum of row %d: %+v", iv.Index, s)
			}
		}
	}
}

// A receiver without headers counts what comes, of whatever length and from before the
// test's first look on, and takes none of it for foreign.
func TestBareCountsEverything(t *testing.T) {
	s := newScript(t, Config{BlockSize: 100, UDP: UDPConfig{Bare: true}, Interval: time.Hour})
	sizes := []int{100, 1, 99, 101, 16, 5000, 65507, 100}
	want := 0
	for _, n := range sizes {
		s.raw(bytes.Repeat([]byte{'B'}, n))
		want += n
	}
	s.e.StopReceive(true)
	if _, err := s.c.Write(make([]byte, 100)); err != nil { // too late
		t.Fatal(err)
	}
	got := s.e.totals(t)
	f := got.Flows[0]
	if f.Total.Bytes != int64(want) || *f.Total.Packets != int64(len(sizes)) || *f.Total.OmittedPackets != 0 {
		t.Errorf("%d bytes in %d datagrams, want %d in %d", f.Total.Bytes, *f.Total.Packets, want, len(sizes))
	}
	rows := s.e.rows.intervals()
	checkBare(t, got, rows)
	checkDatagrams(t, got, rows)
}

// wire reads what an engine's sender puts on it, until want bytes are there.
func wire(t *testing.T, cfg Config, want int) (texts [][]byte) {
	t.Helper()
	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if err := peer.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	c, err := net.DialUDP("udp4", nil, peer.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	cfg.End, cfg.Transport = result.Client, plan.UDP
	e := start(t, cfg, flowsOf([]*osnet.Conn{osnet.NewConn(c)}, result.Up, true))
	e.wait(t, Blocks)
	buf := make([]byte, 65536)
	if err := peer.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < want; {
		k, err := peer.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, bytes.Clone(buf[:k]))
		n += k
	}
	if f := e.totals(t).Flows[0]; f.Err != nil || *f.Total.Packets != cfg.Blocks || f.Total.Bytes != int64(want) || f.UDP.Sent.Packets != cfg.Blocks {
		t.Errorf("%+v, %+v", f, f.UDP.Sent)
	}
	return texts
}

// Bare datagrams are payload from their first byte to their last, whichever way they leave.
func TestBareOnTheWire(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		blocks int64
		rate   int64
		udp    UDPConfig
		fill   byte
	}{
		{"one at a time", 1400, 20, 11_200_000, UDPConfig{Bare: true}, 'B'},
		{"batches", 1400, 100, 0, UDPConfig{Bare: true, Offload: plan.OffloadOff}, 'B'},
		{"super-packets", 128, 300, 0, UDPConfig{Bare: true}, 'A'},
		{"single bytes", 1, 50, 0, UDPConfig{Bare: true}, 'A'},
		{"largest", 65507, 3, 0, UDPConfig{Bare: true}, 'B'},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{BlockSize: c.size, Blocks: c.blocks, Bitrate: c.rate, UDP: c.udp, Fill: c.fill}
			for i, text := range wire(t, cfg, c.size*int(c.blocks)) {
				if !bytes.Equal(text, bytes.Repeat([]byte{c.fill}, c.size)) {
					t.Fatalf("datagram %d has %d bytes, beginning %q", i, len(text), text[:min(20, len(text))])
				}
			}
		})
	}
	t.Run("with a header", func(t *testing.T) { // Fill comes after it
		for _, text := range wire(t, Config{BlockSize: 64, Blocks: 5, Fill: 'A'}, 5*64) {
			if len(text) != 64 || bytes.Count(text[12:], []byte{'A'}) != 64-12 {
				t.Fatalf("%q", text)
			}
		}
	})
}

func TestBareHasNoRoomForNumbers(t *testing.T) {
	for _, u := range []UDPConfig{{Bare: true, Wide: true}, {Bare: true, Nonce: 1}, {Bare: true, FirstSeq: 1}} {
		cfg := Config{Transport: plan.UDP, BlockSize: 100, UDP: u}
		var fault *plan.FieldError
		if _, err := New(cfg, nil); !errors.As(err, &fault) {
			t.Errorf("%+v is possible: %v", u, err)
		}
	}
	for size, ok := range map[int]bool{0: false, 1: true, 65507: true, 65508: false} {
		err := validate(Config{Transport: plan.UDP, BlockSize: size, UDP: UDPConfig{Bare: true}}, []Flow{{Conn: &osnet.Conn{}}})
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// In virtual time, on the portable way: exact, with an omitted part.
func TestBareInVirtualTime(t *testing.T) {
	tx, rx, rows, rxRows := virtualUDP(t, Config{
		BlockSize: 1400, Bitrate: 1_120_000, Interval: time.Second, Duration: 10 * time.Second, Omit: 2 * time.Second,
		UDP: UDPConfig{Bare: true}, Fill: 'A',
	}, nil)
	s, r := tx.Flows[0], rx.Flows[0]
	if *s.Total.Packets != 1200 || s.Total.Bytes != 1_400_000 || *r.Total.Packets != 1200 || *r.Total.OmittedPackets != 200 || r.Total.Bytes != 1_400_000 {
		t.Errorf("sent %d packets, %d bytes; received %d packets, %d omitted, %d bytes",
			*s.Total.Packets, s.Total.Bytes, *r.Total.Packets, *r.Total.OmittedPackets, r.Total.Bytes)
	}
	checkBare(t, rx, rxRows)
	if len(rows) != 12 || len(rxRows) != 12 {
		t.Errorf("%d and %d rows", len(rows), len(rxRows))
	}
}
