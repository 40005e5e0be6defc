package pacing

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// TestSchedule proves the pacing of the engine on any machine, however busy: nothing in
// it depends on when a thread runs. A receiver of its own reads what the sender wrote into
// each datagram at the moment when it decided to send, and the kernel's stamps.
//
//   - No call holds more datagrams than the planned burst.
//   - Two bursts are never closer together than half of what one takes at the rate, unless
//     the first was late by more than 1 ms: a stall, which the sender reports and makes up.
//   - Lateness never adds up: the spread of (send time − due time), due times counted
//     from the start, is the spread that the sender reports. With due times counted from
//     the last send it would grow with every late wake-up.
//   - So at every burst as many datagrams are sent, or given up, as the rate makes of
//     the time, less what the reported lateness makes of it, and never more.
//   - No datagram arrived before it was sent.
//
// How late the kernel's stamps are is a question to the machine: `make bench`.
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       Schedule
		pacing  plan.Pacing
		n       int64
		planned int64
	}{
		{"1 Mbit/s", Schedule{Rate: 1e6, Size: 1400}, "", 60, 1},
		{"10 Mbit/s", Schedule{Rate: 10e6, Size: 1400}, "", 600, 1},
		{"100 Mbit/s", Schedule{Rate: 100e6, Size: 1400}, "", 5000, 1},
		{"500 Mbit/s", Schedule{Rate: 500e6, Size: 1400}, "", 21_000, 3},
		{"64 bytes 1000 times a second", Schedule{Rate: 512_000, Size: 64}, "", 600, 1},
		{"100 Mbit/s, frugal", Schedule{Rate: 100e6, Size: 1400}, plan.PacingFrugal, 5000, 5},
		{"1 Gbit/s, frugal", Schedule{Rate: 1e9, Size: 1448}, plan.PacingFrugal, 44_000, 44},
		{"100 Mbit/s, precise", Schedule{Rate: 100e6, Size: 1400}, plan.PacingPrecise, 5000, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, sent := play(t, c.s, c.pacing, c.n)
			if sent.PlannedBurst != c.planned {
				t.Fatalf("planned burst %d, want %d", sent.PlannedBurst, c.planned)
			}
			c.s.Planned = c.planned
			if sent.Packets != c.n || sent.Refused != 0 || sent.Late == nil {
				t.Fatalf("%+v: want %d sent, none refused", sent, c.n)
			}
			checkCalls(t, got, c.s, sent)
			checkLateness(t, got, c.s, sent)
			if r, ok := Look(got, c.s, nil); ok {
				t.Logf("by the kernel's stamps: rate error %+.3f %%, bursts of %d, the largest %d (planned %d); the sender: largest %d, late p50 %.0f, p99 %.0f µs, %d stalls, %d given up; %d datagrams not received",
					100*r.RateError, r.Median, r.Largest, c.planned, sent.LargestBurst, 1e6*sent.Late.P50, 1e6*sent.Late.P99, sent.Stalls, sent.Unsent, r.Missing)
			}
		})
	}
}

// play sends n datagrams with the engine and returns them as they arrived, and the
// sender's account.
func play(t *testing.T, s Schedule, pacing plan.Pacing, n int64) ([]Arrival, *result.UDPSent) {
	t.Helper()
	const nonce = 99
	from, to := pair(t)
	// Room for a while, as far as this user may have it. What is lost all the same is
	// missing, which no check minds.
	if _, err := to.GrowReceive(32 << 20); err != nil {
		t.Fatal(err)
	}
	fd, err := to.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if err := osnet.SetBlocking(fd, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	in, err := osnet.NewDatagramReceiver(fd, int(s.Size), 64, false, true)
	if err != nil {
		t.Fatal(err)
	}
	e, err := traffic.New(traffic.Config{
		End: result.Client, Transport: plan.UDP, BlockSize: int(s.Size), Bitrate: s.Rate, Blocks: n,
		UDP: traffic.UDPConfig{Wide: true, Nonce: nonce, Pacing: pacing},
	}, []traffic.Flow{{ID: 1, Direction: result.Up, Conn: from, Send: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var over atomic.Bool
	done := make(chan error, 1)
	var got []Arrival
	go func() {
		done <- func() error {
			for {
				n, errno := in.Receive()
				if errno == unix.EAGAIN && over.Load() {
					return nil
				}
				if errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR {
					return errno
				}
				offset := osnet.RealOffset()
				for i := range n {
					d, _, stamp := in.Message(i)
					seq, _ := datagram.Header(d, true)
					sent, key := datagram.Ext(d)
					if key != nonce || stamp == 0 || len(d) != int(s.Size) {
						return fmt.Errorf("a datagram of %d bytes with nonce %d and stamp %d", len(d), key, stamp)
					}
					got = append(got, Arrival{At: stamp - offset, Sent: sent, Seq: int64(seq), Count: 1})
				}
			}
		}()
	}()
	e.Start()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reason, err := e.Wait(ctx)
	e.StopSend()
	totals := e.Finish()
	over.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if reason != traffic.Blocks || err != nil {
		t.Fatalf("ended by %v, %v", reason, err)
	}
	if len(got) == 0 {
		t.Fatal("nothing arrived")
	}
	return got, totals.Flows[0].UDP.Sent
}

// pair makes two connected sockets on loopback.
func pair(t *testing.T) (a, b *osnet.Conn) {
	t.Helper()
	loop := func() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)} }
	holder, err := net.ListenUDP("udp4", loop())
	if err != nil {
		t.Fatal(err)
	}
	local := holder.LocalAddr().(*net.UDPAddr)
	x, err := net.DialUDP("udp4", nil, local)
	if err != nil {
		t.Fatal(err)
	}
	holder.Close()
	y, err := net.DialUDP("udp4", local, x.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	a, b = osnet.NewConn(x), osnet.NewConn(y)
	t.Cleanup(func() { b.Close() })
	return a, b
}

// checkCalls looks at what left together: all datagrams of one call carry one send time.
func checkCalls(t *testing.T, got []Arrival, s Schedule, sent *result.UDPSent) {
	t.Helper()
	slices.SortFunc(got, func(a, b Arrival) int { return int(a.Seq - b.Seq) })
	if n := missing(got); got[0].Seq == 1 && n == 0 && len(got) != int(sent.Packets) {
		t.Errorf("%d datagrams arrived, %d were sent", len(got), sent.Packets)
	}
	// How late a burst was, ns. With a datagram missing the most punctual one may be another,
	// and what was given up moves the schedule.
	begun, known := beginning(got, s, sent)
	late := func(a Arrival) float64 { return float64(a.Sent-begun) - s.TimeOf(a.Seq-1) }
	apart := int64(s.TimeOf(s.Planned) / 2)
	last, tight := -1, 0 // the burst before, and how many were too close
	for i := 0; i < len(got); {
		k := i
		for k < len(got) && got[k].Sent == got[i].Sent {
			k++
		}
		if n := got[k-1].Seq - got[i].Seq + 1; n > s.Planned {
			t.Fatalf("datagrams %d to %d left with one call: %d, planned %d", got[i].Seq, got[k-1].Seq, n, s.Planned)
		}
		if i > 0 && got[i].Sent < got[i-1].Sent {
			t.Fatalf("datagram %d was sent %d ns before datagram %d", got[i].Seq, got[i-1].Sent-got[i].Sent, got[i-1].Seq)
		}
		// The rest of a burst whose call was cut short follows at once.
		if (got[i].Seq-1)%s.Planned == 0 {
			if last >= 0 && known && late(got[last]) < stallNS {
				if d := got[i].Sent - got[last].Sent; d < apart-1 {
					t.Errorf("the burst from datagram %d began %d ns after the one before, which was %.0f ns late: planned are %.0f, and half of it is the least",
						got[i].Seq, d, late(got[last]), s.TimeOf(s.Planned))
					if tight++; tight > 5 {
						t.FailNow()
					}
				}
			}
			last = i
		}
		i = k
	}
	if sent.LargestBurst < s.Planned {
		t.Errorf("the sender reports a largest burst of %d, planned %d", sent.LargestBurst, s.Planned)
	}
}

// stallNS is from when on a burst is a stall, less what the reckoning is exact to.
const stallNS = 1e6 - 10

// beginning is when datagram 1 was due, by the send times and the sender's word of its most
// punctual burst. ok is false where datagrams are missing or were given up.
func beginning(got []Arrival, s Schedule, sent *result.UDPSent) (ns int64, ok bool) {
	return Begins(got, s, sent.Late.Min), got[0].Seq == 1 && missing(got) == 0 && sent.Unsent == 0
}

// checkLateness compares the send times with the schedule and with the sender's word.
func checkLateness(t *testing.T, got []Arrival, s Schedule, sent *result.UDPSent) {
	t.Helper()
	// The quantiles are float64 seconds; due times are rounded down to a ns.
	const slack = 5
	least, most := math.Inf(1), math.Inf(-1)
	late := func(a Arrival) float64 { return float64(a.Sent-got[0].Sent) - s.TimeOf(a.Seq-1) }
	whole := missing(got) == 0 && got[0].Seq == 1
	for _, a := range got {
		if (a.Seq-1)%s.Planned == 0 {
			least, most = min(least, late(a)), max(most, late(a))
		}
		if a.At < a.Sent-int64(time.Millisecond) {
			t.Fatalf("datagram %d arrived %d ns before it was sent", a.Seq, a.Sent-a.At)
		}
	}
	spread := most - least
	told := (sent.Late.Max - sent.Late.Min) * 1e9
	given := s.TimeOf(sent.Unsent) // a schedule that gives up goes on that much later
	if spread > told+given+slack {
		t.Errorf("the send times are spread over %.0f ns around the schedule, the sender tells of %.0f ns, and of %d given up", spread, told, sent.Unsent)
	}
	if whole && sent.Unsent == 0 && spread < told-slack {
		t.Errorf("the send times are spread over %.0f ns around the schedule, the sender tells of %.0f", spread, told)
	}
	if !whole || sent.Unsent > 0 {
		return
	}
	// In datagrams: the schedule began Late.Min before the most punctual burst's word.
	begun := least - sent.Late.Min*1e9
	behind := int64(math.Ceil((sent.Late.Max*1e9+slack)/s.TimeOf(1))) + s.Planned
	for _, a := range got {
		if (a.Seq-1)%s.Planned != 0 {
			continue
		}
		due := int64(math.Floor((float64(a.Sent-got[0].Sent)-begun+slack)/s.TimeOf(1))) + 1 // number 1 is due at once
		if a.Seq > due || a.Seq < due-behind {
			t.Fatalf("datagram %d began a burst when %d were due, and the sender tells of %.0f µs at most", a.Seq, due, 1e6*sent.Late.Max)
		}
	}
}
