package lab_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// replay calls attempt until one counts. attempt returns why it does not, or fails the
// test. A machine that is never fit proves nothing, which is logged and is no failure.
func replay(t *testing.T, attempt func(t *testing.T) (void []string)) {
	t.Helper()
	for i := range 1 + lab.MaxReplays {
		void := attempt(t)
		if t.Failed() || len(void) == 0 {
			return
		}
		t.Logf("play %d: void: %q", i+1, void)
	}
	t.Log("machine unfit: nothing was shown")
}

// probe is one datagram of a live check of the schedule.
type probe struct {
	sent    time.Duration // CLOCK_REALTIME just before the send
	took    time.Duration // by the send
	arrived time.Duration // CLOCK_REALTIME, the kernel's stamp; 0: did not
}

func realtime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// sendProbes sends datagrams of size IP bytes, burst at a time, each burst gap after the
// one before, and returns what became of them.
func sendProbes(t *testing.T, n *lab.Network, bursts, burst, size int, gap time.Duration) []probe {
	t.Helper()
	near, far := udpPair(t, n)
	const headers = 28 // IPv4 and UDP
	probes := make([]probe, bursts*burst)
	done := make(chan error, 1)
	go func() { done <- receiveProbes(far, probes) }()

	buf := make([]byte, size-headers)
	start := realtime()
	for b := range bursts {
		// A late burst is no harm, as the schedule is computed from the stamps; a busy loop
		// would be, as it takes a processor from the link.
		if wait := start + time.Duration(b)*gap - realtime(); wait > 0 {
			ts := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&ts, nil) // a signal may end it early
		}
		for i := range burst {
			k := b*burst + i
			binary.BigEndian.PutUint32(buf, uint32(k))
			probes[k].sent = realtime()
			if _, err := near.Write(buf); err != nil {
				t.Fatal(err)
			}
			probes[k].took = realtime() - probes[k].sent
		}
	}
	// An empty datagram is the end. It is behind all others.
	if _, err := near.Write(nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return probes
}

// receiveProbes notes arrivals, by the kernel's receive stamps, up to an empty datagram.
func receiveProbes(far *net.UDPConn, probes []probe) error {
	raw, err := far.SyscallConn()
	if err != nil {
		return err
	}
	var errOpt error
	if err := raw.Control(func(fd uintptr) {
		errOpt = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}); err != nil || errOpt != nil {
		return errors.Join(err, errOpt)
	}
	buf, oob := make([]byte, 2000), make([]byte, 200)
	for {
		n, oobn, _, _, err := far.ReadMsgUDP(buf, oob)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 || messages[0].Header.Type != unix.SCM_TIMESTAMPNS {
			return fmt.Errorf("no receive stamp: %v, %v", messages, err)
		}
		ts := (*unix.Timespec)(unsafe.Pointer(unsafe.SliceData(messages[0].Data)))
		probes[binary.BigEndian.Uint32(buf)].arrived = time.Duration(ts.Nano())
	}
}

// TestLiveSchedule compares real packets with the schedule: at 200 Mbit/s and 28 ms the
// rate is right within 0.5 % and the delay within 0.3 ms at the 99th percentile.
func TestLiveSchedule(t *testing.T) {
	needNamespaces(t)
	cfg := link.Config{BitsPerSecond: 200_000_000, Delay: 14 * time.Millisecond, QueueBytes: 700_000}
	const (
		size        = 1500
		delayWithin = 300 * time.Microsecond
		rateWithin  = 0.005
	)
	newLink := func(t *testing.T) *lab.Network {
		return network(t)(lab.NewLink(lab.LinkOptions{
			Config: forward.Config{MTU: size, Links: [2]link.Config{cfg, cfg}}, CC: "cubic", Command: linkCommand(t),
		}))
	}
	report := func(t *testing.T, n *lab.Network) *lab.LinkReport {
		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		if d := rep.Directions[0]; rep.Unasked[0] != 0 || d.Unstamped != 0 {
			t.Errorf("%d packets were lost unasked, %d came at an unknown time", rep.Unasked[0], d.Unstamped)
		}
		return rep
	}

	t.Run("delay", func(t *testing.T) {
		// Bursts of 12 build a queue of up to 0.7 ms; half the rate on the average, so that
		// every burst meets an empty link.
		const bursts, burst = 600, 12
		replay(t, func(t *testing.T) []string {
			n := newLink(t)
			probes := sendProbes(t, n, bursts, burst, size, 2*burst*size*8*time.Second/200e6)
			model, err := link.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var errs []time.Duration
			slow, full, missing := 0, 0, 0
			for i, p := range probes {
				// A sender that was interrupted between its stamp and the send tells nothing
				// about the link; what follows in its burst does not either.
				d := model.Enqueue(p.sent, size)
				switch {
				case d.Drop == link.DropQueue:
					full++ // a sender that had stood still made up for it
				case p.arrived == 0 && full == 0:
					if missing++; missing == 1 {
						t.Logf("packet %d did not arrive, the schedule says %+v", i, d)
					}
				case p.arrived == 0:
				case p.took > 100*time.Microsecond:
					slow++
				default:
					errs = append(errs, (p.arrived - d.Arrival).Abs())
				}
			}
			slices.Sort(errs)
			p50, p99 := errs[len(errs)/2], errs[len(errs)*99/100]
			t.Logf("delay: off by p50 %v, p99 %v, max %v; %d sends interrupted", p50, p99, errs[len(errs)-1], slow)
			rep := report(t, n)
			reasons := rep.Void()
			// A link that itself says that it was later than what is to be shown cannot show it.
			if late := rep.Directions[0].Late.P99; late > delayWithin {
				reasons = append(reasons, fmt.Sprintf("lateness p99 %v > %v", late, delayWithin))
			}
			if full > 0 {
				reasons = append(reasons, fmt.Sprintf("the sender stood still, and then filled the queue: %d dropped", full))
			}
			if slow > len(probes)/100 {
				reasons = append(reasons, fmt.Sprintf("%d of %d sends were interrupted", slow, len(probes)))
			}
			// A link that was late has had more at a time than the schedule.
			if len(reasons) == 0 && missing > 0 {
				t.Errorf("%d packets did not arrive", missing)
			}
			if len(reasons) == 0 && p99 > delayWithin {
				t.Errorf("delay off by %v at p99, want at most %v", p99, delayWithin)
			}
			return reasons
		})
	})

	t.Run("rate", func(t *testing.T) {
		// Half as much again as fits, so that the link is never idle.
		const bursts, burst = 1000, 25
		replay(t, func(t *testing.T) []string {
			n := newLink(t)
			probes := sendProbes(t, n, bursts, burst, size, burst*size*8*time.Second/300e6)
			var first, last time.Duration
			packets := 0
			for _, p := range probes {
				if p.arrived == 0 {
					continue // dropped by the queue, as it should be
				}
				if packets == 0 {
					first = p.arrived
				}
				packets, last = packets+1, p.arrived
			}
			// How long the link had nothing to send, by what was put into it: what this sender
			// left out on a busy machine is not the link's.
			idle, busy := time.Duration(0), probes[0].sent
			for _, p := range probes {
				if p.arrived == 0 {
					continue
				}
				idle += max(0, p.sent-busy)
				busy = max(busy, p.sent) + size*8*time.Second/200e6
			}
			rate := float64(packets-1) * size * 8 / (last - first).Seconds()
			t.Logf("rate: %.4f Mbit/s, %d packets in %v", rate/1e6, packets, last-first)
			reasons := report(t, n).Void()
			if idle > (last-first)/1000 {
				reasons = append(reasons, fmt.Sprintf("the sender left the link idle for %v", idle))
			}
			if len(reasons) > 0 {
				return reasons
			}
			if packets < len(probes)*6/10 || packets > len(probes)*8/10 {
				t.Errorf("%d of %d packets arrived, want about two thirds", packets, len(probes))
			}
			if math.Abs(rate/200e6-1) > rateWithin {
				t.Errorf("rate %.0f bit/s, want 200 Mbit/s within 0.5 %%", rate)
			}
			return nil
		})
	})
}

// TestLiveTruth: with loss and repetition, the first copies that left the link are what
// the receiver got: exactly, at the end; and as a rate, in the receiver's window.
func TestLiveTruth(t *testing.T) {
	needNamespaces(t)
	const bytes = 12_000_000
	cfg := link.Config{BitsPerSecond: 100_000_000, Delay: 5 * time.Millisecond, QueueBytes: 250_000, Loss: 0.001, Seed: 3}
	replay(t, func(t *testing.T) []string {
		n := network(t)(lab.NewLink(lab.LinkOptions{
			Config: forward.Config{MTU: 1500, Truth: true, Links: [2]link.Config{cfg, cfg}}, CC: "cubic", Command: linkCommand(t),
		}))
		var ln net.Listener
		if err := n.Far.Do(func() (err error) { ln, err = net.Listen("tcp", lab.FarIPv4+":0"); return err }); err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		failed := make(chan error, 1)
		go func() {
			var c net.Conn
			err := n.Near.Do(func() (err error) { c, err = net.Dial("tcp", ln.Addr().String()); return err })
			if err == nil {
				defer c.Close()
				_, err = c.Write(make([]byte, bytes))
			}
			failed <- err
		}()
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		t0 := monotonic()
		got, err := io.Copy(io.Discard, c)
		t1 := monotonic()
		if err := errors.Join(err, <-failed); err != nil || got != bytes {
			t.Fatalf("received %d bytes, %v", got, err)
		}

		rep, err := n.Link.Report()
		if err != nil {
			t.Fatal(err)
		}
		up, down := &rep.Directions[0], &rep.Directions[1]
		if len(up.Flows) != 1 || up.Flows[0].Bytes != bytes || up.Flows[0].Missing != 0 || up.Untracked != 0 {
			t.Errorf("flows %+v, untracked %d, want one of %d bytes", up.Flows, up.Untracked, bytes)
		}
		if len(down.Flows) != 0 {
			t.Errorf("payload the other way: %+v", down.Flows)
		}
		if up.Link.Loss.Packets == 0 {
			t.Error("nothing was lost, so nothing was shown")
		}
		t.Logf("%d lost, %d dropped by the queue, %d bytes left twice", up.Link.Loss.Packets, up.Link.Queue.Packets, up.Flows[0].Repeated)
		if all := up.Between(t0, t1); math.Abs(all/bytes-1) > 0.005 {
			t.Errorf("%.0f bytes left within the receiver's window, it got %d", all, bytes)
		}
		return rep.Void()
	})
}
