package ntttcp

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// TestLinuxPorts: a Windows receiver with -P n has ports for Linux senders with -P n beside its own
// (recipes N6, N7), and where the sender comes decides.
func TestLinuxPorts(t *testing.T) {
	second := func(t *testing.T, c Config, udp bool) *fixture {
		var lns Listeners
		for range 3 {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			lns.LinuxData = append(lns.LinuxData, ln)
			if udp {
				lns.LinuxPackets = append(lns.LinuxPackets, listenUDP(t, "127.0.0.1:0"))
			}
		}
		var err error
		if lns.LinuxSync, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		f := serveWith(t, c, udp, true, nil, func(l *Listeners) {
			l.LinuxSync, l.LinuxData, l.LinuxPackets = lns.LinuxSync, lns.LinuxData, lns.LinuxPackets
		})
		return f
	}
	other := func(f *fixture, udp bool) func(port int) netip.AddrPort {
		return func(port int) netip.AddrPort {
			switch i := port - DefaultPort; {
			case i < 0:
				return netip.MustParseAddrPort(f.lns.LinuxSync.Addr().String())
			case udp:
				return f.lns.LinuxPackets[i].LocalAddr()
			default:
				return netip.MustParseAddrPort(f.lns.LinuxData[i].Addr().String())
			}
		}
	}
	tcp := Config{Host: "127.0.0.1", Ports: 3, Threads: 1, Endless: true, Bitrate: 4e6, BlockSize: 1000, NoDelay: true, Extension: "off"}
	unsynced := tcp
	unsynced.NoSync = true
	udp := tcp
	udp.Transport = plan.UDP
	windows := Config{Host: "127.0.0.1", Ports: 1, Threads: 1, Windows: true, Blocks: 50, BlockSize: 1000, Duration: time.Hour, Extension: "off"}
	for _, c := range []struct {
		name     string
		sender   Config
		own      bool // it comes to the receiver's own ports
		udp      bool
		streams  int
		ports    int
		basePort int
	}{
		{"Linux", tcp, false, false, 3, 3, plan.NTTTCPPort},
		{"not synchronised", unsynced, false, false, 3, 3, plan.NTTTCPPort},
		{"Linux, udp", udp, false, true, 3, 3, plan.NTTTCPPort},
		{"Windows", windows, true, false, 1, 1, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := second(t, Config{Port: 8, Ports: 1, Windows: true, Expect: 1, OneOff: true, Follow: true}, c.udp)
			at := f.at
			if !c.own {
				at = other(f, c.udp)
			}
			c.sender.Interval = beat / 4
			s := send(t, c.sender, dialFrom("", at))
			if c.sender.Endless {
				until(t, "rows at both ends", func() bool {
					runs := f.tests()
					return len(runs) == 1 && runs[0].moved() && s.rec.moved()
				})
				s.stop(errInterrupt)
			}
			s.wait(t)
			run := f.finished(t, 0)
			n := run.NTTTCP
			if len(run.Streams) != c.streams || n.Ports != c.ports || n.BasePort != c.basePort {
				t.Errorf("%d streams, %+v", len(run.Streams), n)
			}
			if sent, came := bytesOf(s.rec.run(), result.Client), bytesOf(run, result.Server); sent != came || came == 0 {
				t.Errorf("%d bytes sent, %d came", sent, came)
			}
			threads := map[int]bool{}
			for _, x := range run.Streams {
				if x.Thread != nil {
					threads[*x.Thread] = true
				}
			}
			if !c.udp && len(threads) != c.ports {
				t.Errorf("streams of the threads %v", threads)
			}
			if err := <-f.served; err != nil { // one test, whichever ports it came to
				t.Errorf("returns %v", err)
			} else {
				f.served <- nil
			}
		})
	}
}

// TestTogether: senders at several addresses make one test of a Windows receiver that waits for all
// its threads, however they begin.
func TestTogether(t *testing.T) {
	if !loopbackNet(t) {
		t.Skip("this system has one loopback address only: senders at several need others")
	}
	for _, c := range []struct {
		name   string
		nosync bool
		udp    bool
	}{{"tokens", false, false}, {"no sync", true, false}, {"tokens, udp", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rc := Config{Ports: 3, Windows: true, Expect: 3, OneOff: true, Follow: true, NoSync: c.nosync, WaitTimeout: time.Minute}
			if c.udp {
				rc.Transport = plan.UDP
			}
			f := serve(t, rc, nil)
			base := Config{Host: "127.0.0.1", Threads: 1, Windows: true, NoSync: c.nosync, Transport: rc.Transport, Blocks: 60, BlockSize: 1000, Bitrate: 1e6, Duration: time.Hour, WaitTimeout: time.Minute, Extension: "off"}
			two, one := base, base
			two.Ports = 2
			one.Ports, one.Port = 1, DefaultPort+2
			a := send(t, two, dialFrom("127.0.9.61", f.at))
			b := send(t, one, dialFrom("127.0.9.62", f.at))
			if x, y := a.wait(t), b.wait(t); x+y != "" {
				t.Errorf("the senders end with %q and %q", x, y)
			}
			run := f.finished(t, 0)
			want := bytesOf(a.rec.run(), result.Client) + bytesOf(b.rec.run(), result.Client)
			if run.Err != nil || len(run.Streams) != 3 || bytesOf(run, result.Server) != want {
				t.Errorf("%d streams, %d bytes of %d, %+v", len(run.Streams), bytesOf(run, result.Server), want, run.Err)
			}
			hosts := map[string]int{}
			for _, s := range run.Streams {
				hosts[s.Remote.Host]++
			}
			if hosts["127.0.9.61"] != 2 || hosts["127.0.9.62"] != 1 {
				t.Errorf("streams of %v", hosts)
			}
		})
	}
}

// TestSharedSlots: a test of another protocol of the server takes its slot, and is an overlap.
func TestSharedSlots(t *testing.T) {
	t.Parallel()
	slots := plan.Serve{Exclusive: true}.Slots()
	f := serveBoth(t, Config{Ports: 1, Follow: true}, true, true, func(r *Receiver) { r.Slots = slots })
	if _, _, ok := slots.Take(); !ok {
		t.Fatal("no slot")
	}
	s := f.script(t, "127.0.0.1").ask()
	hear(t, s.sync, StateRunning)
	data := f.script(t, "127.0.0.1").dial(f.lns.Data[0])
	token := f.script(t, "127.0.0.1").dial(f.lns.Tokens[0])
	_, _ = token.Write([]byte{Token})
	ends(t, data, token)
	slots.Release()
	say(t, s.sync, WordState)
	hear(t, s.sync, StateFullbore)
	s.propose(0)
	s.connect(0).started().write(10).end()
	if run := f.finished(t, 0); run.Err != nil || f.tests()[0].notice("overlap") != nil {
		t.Errorf("%+v, %+v", run.Err, run.Notices)
	}

	many := plan.Serve{}.Slots()
	f = serve(t, Config{Ports: 1, Follow: true}, func(r *Receiver) { r.Slots = many })
	many.Take()
	f.script(t, "127.0.0.1").hello(0).connect(0).started().write(10).end()
	f.finished(t, 0)
	if f.tests()[0].notice("overlap") == nil {
		t.Error("no word of the other test")
	}
	many.Release()
	s = f.script(t, "127.0.0.1").hello(0).connect(0).started().write(10)
	until(t, "its start", func() bool { return len(f.tests()) == 2 && f.tests()[1].has(result.KindStart) })
	many.Take()
	s.end()
	f.finished(t, 1)
	if f.tests()[1].notice("overlap") == nil {
		t.Error("no word of the test that came later")
	}
}

// TestPolicy: who may come, with how much, for how long.
func TestPolicy(t *testing.T) {
	t.Run("networks", func(t *testing.T) {
		t.Parallel()
		f := serveBoth(t, Config{Ports: 1, Follow: true, Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, true, true, nil)
		s := f.script(t, "127.0.0.1")
		ends(t, s.dial(f.lns.Sync), s.dial(f.lns.Data[0]), s.dial(f.lns.Tokens[0]))
		nc, err := net.Dial("udp", f.lns.Packets[0].LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		for range 5 {
			_, _ = nc.Write(make([]byte, 100))
		}
		f.r.passDatagrams(t.Context())
		if n := len(f.tests()); n != 0 {
			t.Errorf("%d tests", n)
		}
	})
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		f := serve(t, Config{Ports: 3, Follow: true, MaxStreams: 2}, nil)
		a := f.script(t, "127.0.0.1").hello(0).connect(0, 1, 2)
		say(t, a.sync, WordStart)
		hear(t, a.sync, WordEnd)
		w := f.script(t, "127.0.0.1").connect(0, 1, 2)
		ends(t, w.data[2])
		w.end()
		f.script(t, "127.0.0.1").hello(0).connect(0, 1).started().write(10).end()
		if run := f.finished(t, 0); len(run.Streams) != 2 || run.Err != nil {
			t.Errorf("%d streams, %+v", len(run.Streams), run.Err)
		}
	})
	t.Run("streams of datagrams", func(t *testing.T) {
		t.Parallel()
		f := serve(t, Config{Ports: 1, Follow: true, MaxStreams: 1, Transport: plan.UDP}, nil)
		s := f.script(t, "127.0.0.1").hello(0).started()
		for range 2 {
			nc, err := net.Dial("udp", f.lns.Packets[0].LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_, _ = nc.Write(make([]byte, 100))
			f.r.passDatagrams(t.Context())
		}
		say(t, s.sync, WordEnd)
		if run := f.finished(t, 0); len(run.Streams) != 1 || bytesOf(run, result.Server) != 100 || f.tests()[0].notice("streams-refused") == nil {
			t.Errorf("%d streams, %d bytes, %+v", len(run.Streams), bytesOf(run, result.Server), run.Notices)
		}
	})
	t.Run("rate of datagrams", func(t *testing.T) {
		t.Parallel()
		f := serve(t, Config{Ports: 1, Follow: true, MaxRate: 8000, Transport: plan.UDP}, nil)
		f.script(t, "127.0.0.1").hello(0).started()
		nc, err := net.Dial("udp", f.lns.Packets[0].LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		until(t, "its end", func() bool { // a datagram of a second's budget at every look
			_, _ = nc.Write(make([]byte, 1000))
			return len(f.tests()) > 0 && f.tests()[0].has(result.KindFinish)
		})
		if f.tests()[0].notice("budget-reached") == nil {
			t.Errorf("%+v", f.tests()[0].run().Notices)
		}
	})
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		f := serve(t, Config{Ports: 1, Follow: true, MaxDuration: 2 * time.Second}, nil)
		s := f.script(t, "127.0.0.1").ask()
		hear(t, s.sync, StateFullbore)
		say(t, s.sync, 60)
		hear(t, s.sync, 2)
		s.connect(0).started().write(10)
		f.finished(t, 0)
		if f.tests()[0].notice("time-limited") == nil {
			t.Error("a Linux sender's time is cut without a word")
		}
		n := f.script(t, "127.0.0.1").connect(0).write(10)
		run := f.finished(t, 1)
		if f.tests()[1].notice("time-limited") == nil || bytesOf(run, result.Server) != 10 {
			t.Errorf("%d bytes, %+v", bytesOf(run, result.Server), run.Notices)
		}
		ends(t, n.data...)
	})
}

// TestTimesApart: what of different times can be seen is said.
func TestTimesApart(t *testing.T) {
	for _, c := range []struct {
		name     string
		receiver Config
		proposed Word
		answer   Word
		notice   bool
	}{
		{"the same", Config{Duration: 2 * time.Second}, 2, 2, false},
		{"the sender's is longer", Config{Duration: time.Second}, 2, 2, true},
		{"the receiver's is longer", Config{Duration: 2 * time.Second}, 1, 2, true},
		{"warm-up and cool-down at both", Config{Warmup: time.Second, Duration: time.Second, Cooldown: time.Second}, 3, 3, false},
		{"a sender without an end", Config{Duration: 2 * time.Second}, 0, 0, true},
		{"a receiver that follows", Config{Follow: true}, 2, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.receiver.OneOff = true
			f := serve(t, c.receiver, nil)
			s := f.script(t, "127.0.0.1").ask()
			hear(t, s.sync, StateFullbore)
			say(t, s.sync, c.proposed)
			hear(t, s.sync, c.answer)
			s.connect(0).started()
			until(t, "the start", func() bool { return len(f.tests()) == 1 && f.tests()[0].has(result.KindStart) })
			say(t, s.sync, WordEnd)
			f.finished(t, 0)
			if got := f.tests()[0].notice("times-differ") != nil; got != c.notice {
				t.Errorf("said: %v, %+v", got, f.tests()[0].run().Notices)
			}
		})
	}
}

// TestEarlyEnd: without an agreement either end may be the first.
func TestEarlyEnd(t *testing.T) {
	for _, windows := range []bool{true, false} {
		t.Run(fmt.Sprintf("tokens %v, the sender", windows), func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Ports: 2, Duration: time.Hour, OneOff: true}, nil)
			s := f.script(t, "127.0.0.1").connect(0, 1)
			if windows {
				s.tokens(0, 1).answered()
			}
			s.write(1000).end()
			run := f.finished(t, 0)
			// Of an original that synchronises nothing tells an end from a death.
			told := f.tests()[0].notice("sender-shorter") != nil
			died := run.Err != nil && run.Err.Code == "peer-vanished"
			if died != windows || told == windows || bytesOf(run, result.Server) != 2000 {
				t.Errorf("%d bytes, %+v, %+v", bytesOf(run, result.Server), run.Err, run.Notices)
			}
		})
		t.Run(fmt.Sprintf("tokens %v, the receiver", windows), func(t *testing.T) {
			t.Parallel()
			f := serve(t, Config{Ports: 2, Duration: 3 * time.Second, OneOff: true}, nil)
			s := f.script(t, "127.0.0.1").connect(0, 1)
			if windows {
				s.tokens(0, 1).answered()
			}
			s.write(1000)
			until(t, "its totals", func() bool {
				for _, nc := range s.data { // until this end cannot be overheard any more
					_, _ = nc.Write([]byte{PayloadByte})
				}
				return len(f.tests()) > 0 && f.tests()[0].has(result.KindFinish)
			})
			// What comes now comes after the receiver's time, as long as it listens.
			until(t, "its end", func() bool {
				for _, nc := range s.data {
					_, _ = nc.Write([]byte{PayloadByte})
				}
				select {
				case <-f.tests()[0].done:
					return true
				default:
					return false
				}
			})
			run := f.finished(t, 0)
			ends(t, s.data...)
			if bytesOf(run, result.Server) < 2000 || run.Err != nil || f.tests()[0].notice("sender-longer") == nil {
				t.Errorf("%d bytes, %+v, %+v", bytesOf(run, result.Server), run.Err, run.Notices)
			}
		})
	}
}
