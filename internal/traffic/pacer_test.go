package traffic

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// TestPacerNeverDrifts drives a pacer with made-up lateness: what it let through is
// never more than one unit from what the rate allows, however late each call came.
func TestPacerNeverDrifts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1_000, 400_000_000_000).Draw(t, "rate")
		block := rapid.IntRange(1, 1<<20).Draw(t, "block")
		burst := rapid.IntRange(0, 20).Draw(t, "burst")
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		var p pacer
		p.set(rate, block, burst, start)
		now, left := start, int64(block)
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			n, wait := p.allow(now, left)
			switch {
			case n == 0 && wait <= 0:
				t.Fatal("neither bytes nor a wait")
			case n == 0:
				now += wait + rapid.Int64Range(0, 2*wait).Draw(t, "late")
			default:
				if n > left {
					t.Fatalf("allowed %d of %d", n, left)
				}
				took := rapid.Int64Range(1, n).Draw(t, "took")
				p.took(took)
				if left -= took; left == 0 {
					left = int64(block)
				}
			}
			due := float64(now-start+1) * float64(rate) / 8e9 // the clock counts whole ns
			if float64(p.moved) > due+float64(p.unit)+1 {
				t.Fatalf("moved %d where the rate allows %.0f and a unit is %d", p.moved, due, p.unit)
			}
		}
	})
}

func TestPacerUnit(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  int64
		block int
		burst int
		want  int64
	}{
		{"fast: a block", 20_000_000, 128 << 10, 0, 128 << 10},
		{"slow: a tenth of a second", 1_000_000, 128 << 10, 0, 12500},
		{"very slow", 10_000, 128 << 10, 0, 125},
		{"slower than bytes", 100, 128 << 10, 0, 16},
		{"small block", 1_000_000, 1000, 0, 1000},
		{"burst is meant", 1_000_000, 1000, 10, 10000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p pacer
			p.set(c.rate, c.block, c.burst, 0)
			if p.unit != c.want {
				t.Errorf("unit %d, want %d", p.unit, c.want)
			}
		})
	}
}

// virtual runs a sender over an in-memory connection in virtual time and returns the
// receiver's rows and both totals.
func virtual(t *testing.T, cfg Config, steer func(*Engine)) (tx, rx Totals, txRows, rxRows []result.Interval) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		flow := func(c net.Conn, send bool) []Flow {
			return []Flow{{ID: 1, Socket: 5, Direction: result.Up, Conn: osnet.NewConn(c), Send: send}}
		}
		r := start(t, Config{End: result.Server, Interval: time.Second, Omit: cfg.Omit}, flow(b, false))
		s := start(t, cfg, flow(a, true))
		if steer != nil {
			steer(s.Engine)
		}
		s.wait(t, Duration)
		s.StopSend()
		r.StopReceive(false)
		tx, rx = s.totals(t), r.totals(t)
		txRows, rxRows = s.rows.intervals(), r.rows.intervals()
		s.Close()
		r.Close()
	})
	return tx, rx, txRows, rxRows
}

// A rate far below one block a second moves in small writes, evenly (field case F21).
func TestLowRateIsEven(t *testing.T) {
	_, rx, _, rows := virtual(t, Config{
		End: result.Client, Interval: time.Second, Duration: 5 * time.Second, Bitrate: 10_000, BlockSize: 128 << 10,
	}, nil)
	if got := rx.Flows[0].Total.Bytes; got != 6250 {
		t.Errorf("received %d bytes in 5 s at 10 kbit/s, want 6250", got)
	}
	if len(rows) != 5 {
		t.Fatalf("%d rows, want 5", len(rows))
	}
	for _, r := range rows {
		if b := r.Streams[0].Bytes; b != 1250 {
			t.Errorf("row %v–%v: %d bytes, want 1250", r.Start, r.Stop, b)
		}
	}
}

func TestPacedAverage(t *testing.T) {
	for _, c := range []struct {
		name        string
		rate, burst int64
		block       int
		slack       int64
	}{
		{"20 Mbit/s", 20_000_000, 0, 128 << 10, 128 << 10},
		{"1 Mbit/s", 1_000_000, 0, 128 << 10, 12500},
		{"burst of 10", 8_000_000, 10, 1000, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx, rx, _, _ := virtual(t, Config{
				End: result.Client, Interval: time.Second, Duration: 10 * time.Second, Omit: 2 * time.Second,
				Bitrate: c.rate, Burst: int(c.burst), BlockSize: c.block,
			}, nil)
			want := c.rate / 8 * 10
			if got := rx.Flows[0].Total.Bytes; got < want-c.slack || got > want+c.slack {
				t.Errorf("received %d, want %d ± %d", got, want, c.slack)
			}
			// What is sent in the very instant of the end of omit may fall on either side.
			if d := tx.Flows[0].Total.Bytes - rx.Flows[0].Total.Bytes; d < -c.slack || d > c.slack {
				t.Errorf("sent %d, received %d", tx.Flows[0].Total.Bytes, rx.Flows[0].Total.Bytes)
			}
			if e := tx.Flows[0].Total.End; e != 10 {
				t.Errorf("end %v, want 10", e)
			}
		})
	}
}

func TestSteerBeginsANewSchedule(t *testing.T) {
	_, _, rows, _ := virtual(t, Config{
		End: result.Client, Interval: time.Second, Duration: 4 * time.Second, Bitrate: 1_000_000, BlockSize: 12500,
	}, func(e *Engine) {
		time.Sleep(2 * time.Second)
		e.Steer(2_000_000)
	})
	want := []int64{125_000, 125_000, 250_000, 250_000}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, r := range rows {
		if d := r.Streams[0].Bytes - want[i]; d < -25_000 || d > 25_000 {
			t.Errorf("row %d: %d bytes, want %d", i, r.Streams[0].Bytes, want[i])
		}
	}
}

// Rows keep to the boundaries computed from the start, the axis restarts at the end of
// the omitted part, and the row that the duration ends is not split.
func TestRowsInVirtualTime(t *testing.T) {
	_, _, rows, _ := virtual(t, Config{
		End: result.Client, Interval: 400 * time.Millisecond, Omit: time.Second, Duration: time.Second,
		Bitrate: 1_000_000, BlockSize: 1000,
	}, nil)
	type row struct {
		start, stop      float64
		omitted, partial bool
	}
	var got []row
	for i, r := range rows {
		if r.Index != i {
			t.Errorf("row %d has index %d", i, r.Index)
		}
		got = append(got, row{r.Start, r.Stop, r.Omitted, r.Partial})
	}
	want := []row{
		{0, 0.4, true, false},
		{0.4, 0.8, true, false},
		{0.8, 1, true, false},
		{0, 0.4, false, false},
		{0.4, 0.8, false, false},
		{0.8, 1, false, true},
	}
	if len(got) != len(want) {
		t.Fatalf("rows %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestIntervalZeroIsOneRow(t *testing.T) {
	tx, _, rows, _ := virtual(t, Config{
		End: result.Client, Omit: time.Second, Duration: 3 * time.Second, Bitrate: 1_000_000,
	}, nil)
	if len(rows) != 1 || rows[0].Omitted || rows[0].Partial {
		t.Fatalf("rows %+v, want one, counted and whole", rows)
	}
	if rows[0].Start != 0 || rows[0].Stop != 3 || rows[0].Streams[0].Bytes != tx.Flows[0].Total.Bytes {
		t.Errorf("row %+v does not equal the total %+v", rows[0].Streams[0], tx.Flows[0].Total)
	}
}

func TestReceiveTimeoutInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		e := start(t, Config{End: result.Server, Interval: time.Hour, ReceiveTimeout: 3 * time.Second},
			[]Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
		begun := time.Now()
		time.Sleep(2 * time.Second)
		if _, err := a.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		e.wait(t, ReceiveTimeout)
		if got := time.Since(begun); got != 5*time.Second {
			t.Errorf("after %v, want 5 s: 3 s from the last byte", got)
		}
		e.Close()
	})
}

// A limited run's receiver ends with its last byte, not with the goodbye; another ends
// when it is stopped.
func TestReceiverEndOfALimitedRun(t *testing.T) {
	for _, limited := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			e := start(t, Config{End: result.Server, Interval: time.Second, Limited: limited},
				[]Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(b)}})
			time.Sleep(1500 * time.Millisecond)
			if _, err := a.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1100 * time.Millisecond)
			// Whoever hears of the end in another way gives up waiting; that is no other end.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if r, _ := e.Wait(ctx); r != Cancelled {
				t.Errorf("Wait = %v", r)
			}
			e.StopReceive(false)
			f := e.totals(t).Flows[0]
			want := 2.6
			if limited {
				want = 1.5
			}
			if f.Total.End != want || f.LastByte != 1.5 {
				t.Errorf("limited %v: end %v, last byte %v; want %v, 1.5", limited, f.Total.End, f.LastByte, want)
			}
			e.Close()
			a.Close()
		})
	}
}

func TestCancelledCarriesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go io.Copy(io.Discard, b)
		e := start(t, Config{End: result.Client, Interval: time.Second, Bitrate: 1000}, []Flow{{ID: 1, Direction: result.Up, Conn: osnet.NewConn(a), Send: true}})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(io.ErrNoProgress) })
		if r, err := e.Wait(ctx); r != Cancelled || err != io.ErrNoProgress {
			t.Errorf("Wait = %v, %v", r, err)
		}
		e.Close()
		b.Close()
	})
}
