package diagnose_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/result"
)

func ptr[T any](v T) *T { return &v }

// cored makes a test whose client has these cores, and whose worker there has this load.
func cored(load float64, cores ...string) func(*sample.Test) {
	return func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample {
			h := sample.Cores(60, cores...)
			if e == result.Client {
				h.WorkerLoad = &load
			}
			return h
		}
	}
}

// judged are the verdicts of one test upwards, over a path of that round trip.
func judged(f result.Facts, changes ...func(*sample.Test)) []result.Verdict {
	return judgedAt(0.005, f, changes...)
}

// judgedAt is judged over a path of another round trip, s.
func judgedAt(rtt float64, f result.Facts, changes ...func(*sample.Test)) []result.Verdict {
	t := sample.New()
	for _, change := range changes {
		change(&t)
	}
	return diagnose.Judge([]method.Done{idleStage(rtt), stage("up-1", t)}, &f)
}

// Notes that rest on this host's settings: each with what makes it, and what must not.
func TestHostNotes(t *testing.T) {
	busy, quiet := cored(0.97, "5/70/20/5", "0/5/0/95"), cored(0.3, "5/20/5/70", "0/5/0/95")
	for _, c := range []struct {
		name, code string
		facts      result.Facts
		change     func(*sample.Test)
		certainty  string // "" = must not be said
	}{
		{"offloads off, busy", diagnose.OffloadOff, result.Facts{Kind: "physical", NIC: "eth0", Off: []string{"tx-tcp-segmentation", "rx-gro"}}, busy, diagnose.Likely},
		{"offloads off, idle", diagnose.OffloadOff, result.Facts{Kind: "physical", NIC: "eth0", Off: []string{"rx-gro"}}, quiet, diagnose.Possible},
		{"offloads on", diagnose.OffloadOff, result.Facts{Kind: "physical"}, busy, ""},
		{"ring small and overflown before", diagnose.SmallRing, result.Facts{RingNow: ptr(256), RingMax: ptr(4096), Missed: ptr(int64(812))}, quiet, diagnose.Possible},
		{"ring small, never overflown", diagnose.SmallRing, result.Facts{RingNow: ptr(256), RingMax: ptr(4096), Missed: ptr(int64(0))}, quiet, ""},
		{"ring at its most, overflown", diagnose.SmallRing, result.Facts{RingNow: ptr(4096), RingMax: ptr(4096), Missed: ptr(int64(812))}, quiet, ""},
		{"ring overflows now", diagnose.SmallRing, result.Facts{RingNow: ptr(256), RingMax: ptr(4096)}, func(t *sample.Test) {
			t.Hosts = func(result.End, int) *result.HostSample {
				h := sample.Cores(60, "5/20/5/70")
				h.NIC = &result.NICDelta{Name: "eth0", RxMissed: 7}
				return h
			}
		}, diagnose.Likely},
		{"core of the other node", diagnose.Distance, result.Facts{NUMANode: ptr(1), NUMANodes: ptr(2), NearCPUs: "8-15,24-31"}, busy, diagnose.Likely},
		{"core of the card's node", diagnose.Distance, result.Facts{NUMANode: ptr(0), NUMANodes: ptr(2), NearCPUs: "0-7"}, busy, ""},
		{"one node", diagnose.Distance, result.Facts{NUMANode: ptr(0), NUMANodes: ptr(1), NearCPUs: "8-15"}, busy, ""},
		{"connection table nearly full", diagnose.TableFull, result.Facts{Conntrack: ptr(0.97), TrackedMax: ptr(int64(65536))}, quiet, diagnose.Likely},
		{"connection table half full", diagnose.TableFull, result.Facts{Conntrack: ptr(0.5), TrackedMax: ptr(int64(65536))}, quiet, ""},
		{"slow clock, busy", diagnose.SlowClock, result.Facts{MHz: ptr(2600), NowMHz: ptr(1200), Governor: "schedutil"}, busy, diagnose.Likely},
		{"slow clock, idle", diagnose.SlowClock, result.Facts{MHz: ptr(2600), NowMHz: ptr(1200), Governor: "schedutil"}, quiet, ""},
		{"kept slow by its governor", diagnose.SlowClock, result.Facts{MHz: ptr(2600), NowMHz: ptr(1200), Governor: "powersave"}, quiet, diagnose.Possible},
		{"full clock, busy", diagnose.SlowClock, result.Facts{MHz: ptr(2600), NowMHz: ptr(2600), Governor: "performance"}, busy, ""},
		{"power saver on battery, busy", diagnose.SlowClock, result.Facts{Governor: "Power saver", OnBattery: ptr(true)}, busy, diagnose.Possible},
		{"imitated card", diagnose.EmulatedCard, result.Facts{Emulated: true, Driver: "e1000"}, quiet, diagnose.Likely},
		{"forwards and is busy", diagnose.Forwarder, result.Facts{Forwarding: ptr(true)}, busy, diagnose.Possible},
		{"forwards and is idle", diagnose.Forwarder, result.Facts{Forwarding: ptr(true)}, quiet, ""},
		{"does not forward", diagnose.Forwarder, result.Facts{Forwarding: ptr(false)}, busy, ""},
		{"the server forwards and is busy", diagnose.Forwarder, result.Facts{}, func(t *sample.Test) {
			t.Server.Forwarding = ptr(true)
			t.Hosts = func(e result.End, _ int) *result.HostSample {
				h := sample.Cores(60, "5/20/5/70")
				if e == result.Server {
					h.WorkerLoad = ptr(0.99)
				}
				return h
			}
		}, diagnose.Possible},
		{"dropped before the socket", diagnose.BacklogDropped, result.Facts{}, func(t *sample.Test) {
			t.Hosts = func(e result.End, _ int) *result.HostSample {
				h := sample.Cores(60, "5/20/5/70")
				h.Softnet = &result.Softnet{Processed: 1000}
				if e == result.Server {
					h.Softnet.Dropped, h.Softnet.Squeezed = 3, 9
				}
				return h
			}
		}, diagnose.Likely},
		{"squeezed only", diagnose.BacklogDropped, result.Facts{}, func(t *sample.Test) {
			t.Hosts = func(result.End, int) *result.HostSample {
				h := sample.Cores(60, "5/20/5/70")
				h.Softnet = &result.Softnet{Processed: 1000, Squeezed: 9}
				return h
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := find(judged(c.facts, c.change), c.code)
			if (v != nil) != (c.certainty != "") {
				t.Fatalf("%+v", v)
			}
			if v != nil && (v.Certainty != c.certainty || !v.Note || len(v.Evidence) == 0) {
				t.Errorf("%+v, wanted %s", *v, c.certainty)
			}
		})
	}
}

// The ends, compared: alike ends say nothing; each difference is one note.
func TestDifferences(t *testing.T) {
	ends := func(change func(a, b *result.Host)) func(*sample.Test) {
		return func(t *sample.Test) {
			for _, h := range []*result.Host{&t.Client, &t.Server} {
				h.Name, h.OS, h.Cores, h.CPUModel, h.Virtual = "h", "linux", 8, "Xeon", "none"
				h.Tool = &result.Tool{Name: "fullbore", Version: "1"}
				h.NIC = &result.NIC{Name: "eth0", MTU: 1500, SpeedBPS: ptr(int64(10e9)), Duplex: "full"}
			}
			t.Client.Name, t.Server.Name = "a", "b"
			change(&t.Client, &t.Server)
		}
	}
	codes := []string{
		diagnose.Translated, diagnose.MTUDiffers, diagnose.SpeedDiffers, diagnose.CoresDiffer, diagnose.VersionsDiffer, diagnose.ControlDiffers, diagnose.SameHypervisor,
	}
	wire := func(change func(*result.Wire)) func(*sample.Test) {
		return func(t *sample.Test) {
			ends(func(_, _ *result.Host) {})(t)
			t.Tune = func(head *result.Run, _ *[]result.Event) { change(head.Wire) }
		}
	}
	for _, c := range []struct {
		name, code, words string
		rtt               float64
		change            func(*sample.Test)
	}{
		{"alike", "", "", 0.005, ends(func(_, _ *result.Host) {})},
		{"MTU", diagnose.MTUDiffers, "jumbo", 0.005, ends(func(a, _ *result.Host) { a.NIC.MTU = 9000 })},
		{"speed", diagnose.SpeedDiffers, "b 1.00 Gbit/s", 0.005, ends(func(_, b *result.Host) { b.NIC.SpeedBPS = ptr(int64(1e9)) })},
		{"cores", diagnose.CoresDiffer, "2 on b", 0.005, ends(func(_, b *result.Host) { b.Cores = 2 })},
		{"cores alike", "", "", 0.005, ends(func(_, b *result.Host) { b.Cores = 4 })},
		{"releases", diagnose.VersionsDiffer, "releases", 0.005, ends(func(_, b *result.Host) { b.Tool.Version = "2" })},
		{"client behind a translator", diagnose.Translated, "NAT", 0.005, wire(func(w *result.Wire) { w.SeenAs = &result.Addr{Host: "198.51.100.7"} })},
		{"server behind a balancer", diagnose.Translated, "balancer", 0.005, wire(func(w *result.Wire) { w.PeerLocal = &result.Addr{Host: "192.168.7.7"} })},
		{"addresses as they are", "", "", 0.005, wire(func(w *result.Wire) {
			w.SeenAs, w.PeerLocal = &result.Addr{Host: "10.0.0.1"}, &result.Addr{Host: "10.0.0.2"}
		})},
		{"two machines of one hypervisor", diagnose.SameHypervisor, "virtual switch", 0.0001, ends(func(a, b *result.Host) { a.Virtual, b.Virtual = "kvm", "kvm" })},
		{"two far ones", "", "", 0.005, ends(func(a, b *result.Host) { a.Virtual, b.Virtual = "kvm", "kvm" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := sample.New()
			c.change(&run)
			vs := diagnose.Judge([]method.Done{idleStage(c.rtt), stage("up-1", run)}, &result.Facts{})
			for _, code := range codes {
				v := find(vs, code)
				if (v != nil) != (code == c.code) {
					t.Errorf("%s: %+v", code, v)
				}
				if v != nil && (!strings.Contains(v.Summary, c.words) || !v.Note) {
					t.Errorf("%s", v.Summary)
				}
			}
		})
	}
}

func TestControlsDiffer(t *testing.T) {
	down := sample.New()
	down.Direction, down.CC = "down", "bbr"
	up := sample.New()
	up.CC = "cubic"
	history := []method.Done{idleStage(0.005), stage("up-1", up), stage("down-1", down)}
	if v := find(diagnose.Judge(history, nil), diagnose.ControlDiffers); v == nil {
		t.Error("cubic against bbr is not said")
	}
	history[2].Run.Test.Congestion = "bbr"
	if v := find(diagnose.Judge(history, nil), diagnose.ControlDiffers); v != nil {
		t.Errorf("it was asked for: %s", v.Summary)
	}
}

// The grades at their bounds, as their source has them.
func TestGrade(t *testing.T) {
	for _, c := range []struct {
		rise  float64
		grade string
	}{{0.001, "A+"}, {0.0049, "A+"}, {0.005, "A "}, {0.0299, "A "}, {0.030, "B"}, {0.0599, "B"}, {0.060, "C"}, {0.1999, "C"}, {0.2, "D"}, {0.3999, "D"}, {0.4, "F"}, {3, "F"}} {
		d := stage("up-1", sample.New())
		d.Run.Probes = []result.Probes{{Kind: "udp-echo", Sent: 400, Answered: 400, Up: &result.OneWay{PDV: &result.Quantiles{N: 400, P50: c.rise / 2, P95: c.rise, P99: c.rise}}}}
		v := find(diagnose.Judge([]method.Done{idleStage(0.02), d}, nil), diagnose.LoadedDelay)
		if v == nil || !strings.Contains(v.Summary, "grade "+c.grade) || value(v, "rise") != c.rise {
			t.Errorf("%v: %+v", c.rise, v)
		}
		if want := 60 / (0.02 + c.rise/2); v != nil && math.Abs(value(v, "rpm_up")-want) > want/20 {
			t.Errorf("%v: %v round trips a minute, wanted %v", c.rise, value(v, "rpm_up"), want)
		}
	}
	if v := find(diagnose.Judge([]method.Done{idleStage(0.02), stage("up-1", sample.New())}, nil), diagnose.LoadedDelay); v != nil {
		t.Errorf("without probes: %s", v.Summary)
	}
}

// A rate that goes up and down is told with its period and with what went with it; a steady
// one, one that grows and one that stopped are not.
func TestUnsteady(t *testing.T) {
	wave := func(i int) float64 {
		if i/3%2 == 0 {
			return 40e6
		}
		return 20e6
	}
	make20 := func(f func(int) float64) (out []float64) {
		for i := range 24 {
			out = append(out, f(i))
		}
		return out
	}
	throttled := func(t *sample.Test) {
		t.Hosts = func(e result.End, row int) *result.HostSample {
			h := sample.Cores(20, "5/10/5/80")
			if e == result.Server {
				h.Throttled = ptr(0.03)
				if wave(row) < 30e6 {
					h.Throttled = ptr(0.045)
				}
			}
			return h
		}
	}
	for _, c := range []struct {
		name   string
		rates  []float64
		change func(*sample.Test)
		said   bool
		period float64
		with   string
	}{
		{"a wave", make20(wave), func(*sample.Test) {}, true, 1.2, "nothing that was counted"},
		{"a wave of the quota", make20(wave), throttled, true, 1.2, "CPU quota of b"},
		{"steady", make20(func(int) float64 { return 40e6 }), throttled, false, 0, ""},
		{"grows", make20(func(i int) float64 { return 40e6 + 2e5*float64(i) }), throttled, false, 0, ""},
		{"stopped", make20(func(i int) float64 {
			if i >= 12 && i < 18 {
				return 0
			}
			return 40e6
		}), throttled, false, 0, ""},
		{"wavers without a period", []float64{
			40e6, 22e6, 39e6, 41e6, 20e6, 21e6, 38e6, 19e6, 40e6, 40e6, 40e6, 18e6, 42e6, 20e6, 22e6, 19e6, 41e6, 39e6, 21e6, 40e6, 41e6, 42e6, 19e6, 18e6,
		}, func(*sample.Test) {}, true, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := sample.New()
			run.Rates, run.Step = c.rates, 0.2
			run.Client.Name, run.Server.Name = "a", "b"
			c.change(&run)
			v := find(diagnose.Judge([]method.Done{idleStage(0.005), stage("up-1", run)}, nil), diagnose.Unsteady)
			if (v != nil) != c.said {
				t.Fatalf("%+v", v)
			}
			if v == nil {
				return
			}
			if p := value(v, "period"); math.Abs(p-c.period) > 0.1 {
				t.Errorf("period %v, wanted %v: %s", p, c.period, v.Summary)
			}
			if !strings.Contains(v.Summary, c.with) {
				t.Errorf("%s", v.Summary)
			}
		})
	}
}

// One thread for all streams: by the release, or by a core that is full with several streams
// that carry no more.
func TestOldPeer(t *testing.T) {
	foreign := func(streams int, cpu float64) method.Done {
		f := sample.Foreign("")
		f.Streams, f.Rates, f.CPU = streams, sample.Flat(9e9, 10), [2]float64{70, cpu}
		return stage("up-"+map[int]string{1: "1", 4: "4"}[streams], f)
	}
	for _, c := range []struct {
		name string
		cpu  float64
		said bool
	}{{"full", 99, true}, {"idle", 40, false}, {"several threads", 260, false}} {
		vs := diagnose.Judge([]method.Done{foreign(1, 99), foreign(4, c.cpu)}, nil)
		if v := find(vs, diagnose.OldPeer); (v != nil) != c.said {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	if v := find(diagnose.Judge([]method.Done{stage("up-1", sample.Foreign("3.12"))}, nil), diagnose.OldPeer); v == nil || v.Certainty != diagnose.Possible {
		t.Errorf("iperf 3.12: %+v", v)
	}
	if v := find(diagnose.Judge([]method.Done{stage("up-1", sample.Foreign("3.21"))}, nil), diagnose.OldPeer); v != nil {
		t.Errorf("iperf 3.21: %s", v.Summary)
	}
}

// The tool's own limit, by a stage over loopback.
func TestToolLimit(t *testing.T) {
	for _, c := range []struct {
		self float64
		said bool
	}{{11e9, true}, {30e9, false}} {
		self, up := sample.New(), sample.New()
		self.Rates, up.Rates = sample.Flat(c.self, 2), sample.Flat(9e9, 10)
		vs := diagnose.Judge([]method.Done{idleStage(0.0005), stage("up-1", up), stage("self", self)}, nil)
		if v := find(vs, diagnose.ToolLimit); (v != nil) != c.said {
			t.Errorf("%v: %+v", c.self, v)
		}
	}
}

// The stage itself is made where it can matter only.
func TestSelfStep(t *testing.T) {
	for _, c := range []struct {
		rate float64
		rtt  float64
		want bool
	}{{9e9, 0.0005, true}, {1e9, 0.0005, false}} {
		up := sample.New()
		up.Rates = sample.Flat(c.rate, 10)
		s, worth := diagnose.SelfStep([]method.Done{idleStage(c.rtt), stage("up-1", up)}, nil, time.Second)
		if worth != c.want || worth && (s.Plan.Streams != 1 || s.Plan.Duration != time.Second) {
			t.Errorf("%v: %v, %+v", c.rate, worth, s)
		}
	}
	gone := stage("up-4", sample.New())
	gone.Err = &result.Error{Code: "connect", Text: "gone"}
	fast := sample.New()
	fast.Rates = sample.Flat(9e9, 10)
	if _, worth := diagnose.SelfStep([]method.Done{stage("up-1", fast), gone}, nil, time.Second); worth {
		t.Error("after the peer was lost")
	}
}

// A full path says what it means: the layers' rates and how much the processors would bear.
func TestMeaning(t *testing.T) {
	speed := int64(1e9)
	v := find(judged(result.Facts{}, cored(0.25, "5/20/5/70"), func(t *sample.Test) {
		t.Client.NIC = &result.NIC{Name: "eth0", SpeedBPS: &speed, MTU: 1500, Duplex: "full"}
	}), diagnose.LinkFull)
	if v == nil {
		t.Fatal("no link-full")
	}
	// 941.48 Mbit/s of payload with timestamps are 1 Gbit/s on the wire (M-6349's golden values).
	if l1 := value(v, "rate_l1"); math.Abs(l1-1e9) > 1e6 {
		t.Errorf("l1 %v", l1)
	}
	if r := value(v, "head_room"); math.Abs(r-4) > 0.1 {
		t.Errorf("head room %v", r)
	}
}

// Facts of whole recorded hosts come through.
func TestSettings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "oshost", "testdata", "hosts", "server-25g.json"))
	if err != nil {
		t.Fatal(err)
	}
	var inv oshost.Inventory
	if err := json.Unmarshal(data, &inv); err != nil {
		t.Fatal(err)
	}
	f := oshost.Settings(&inv)
	if f.NIC != "ens1f0" || f.Driver != "mlx5_core" || *f.SpeedBPS != 25e9 || f.Duplex != "full" || f.MTU != 9000 || *f.RingNow != 8192 || *f.RingMax != 8192 ||
		*f.QueuesNow != 16 || *f.NUMANode != 0 || f.Qdisc == "" || len(f.Off) != 0 || !f.Recorded || *f.MHz != 2100 {
		t.Errorf("%+v", *f)
	}
	inv.NICs[0].Offloads[oshost.TSO] = oshost.Offload{}
	if f := oshost.Settings(&inv); len(f.Off) != 1 || f.Off[0] != oshost.TSO {
		t.Errorf("off: %v", f.Off)
	}
}

// What the other end tells of its settings is named in the advice, beside what is needed; a stranger's
// advice has the command alone.
func TestToldSettings(t *testing.T) {
	told := result.Facts{
		TCPRead: &[3]int64{4096, 65536, 65536}, CoreRead: ptr(int64(212992)), Backlog: ptr(int64(1000)), PollBudget: ptr(int64(300)), Quota: ptr(0.5),
	}
	window := func(t *sample.Test) {
		t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = sample.Flat(10.4e6, 10), 50000, 49800, 65536, 0.93
	}
	dropped := func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample {
			h := sample.Cores(60, "5/20/5/70")
			if e == result.Server {
				h.Softnet = &result.Softnet{Processed: 1000, Dropped: 3}
			}
			return h
		}
	}
	held := func(t *sample.Test) {
		t.Hosts = func(e result.End, _ int) *result.HostSample {
			h := sample.Cores(30, "5/20/5/70")
			if e == result.Server {
				h.Throttled = ptr(0.4)
			}
			return h
		}
	}
	for _, c := range []struct {
		name, code string
		rtt        float64
		change     func(*sample.Test)
		words      string // in evidence or advice where it is told
	}{
		{"receive window", diagnose.ReceiveWindow, 0.0498, window, "net.ipv4.tcp_rmem is 4096 65536 65536 now, and "},
		{"backlog", diagnose.BacklogDropped, 0.005, dropped, "net.core.netdev_max_backlog is 1000 and netdev_budget 300 now: sysctl -w net.core.netdev_max_backlog=10000 net.core.netdev_budget=600"},
		{"quota", diagnose.ReceiverCPU, 0.005, held, "allows 0.5 processors' worth of time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, tells := range []bool{true, false} {
				v := find(judgedAt(c.rtt, result.Facts{}, c.change, func(t *sample.Test) {
					if t.Server.OS = "linux"; tells {
						t.Server.Settings = &told
					}
				}), c.code)
				if v == nil {
					t.Fatalf("told %v: nothing", tells)
				}
				all := strings.Join(append(v.Evidence, v.Advice...), "\n")
				if strings.Contains(all, c.words) != tells {
					t.Errorf("told %v: %s", tells, all)
				}
			}
		})
	}
}

// The same notes of the other end, by what it tells of itself: they name it, and nothing is said of a
// server that tells nothing.
func TestServerNotes(t *testing.T) {
	at := func(load float64, cores ...string) func(*sample.Test) {
		return func(t *sample.Test) {
			t.Hosts = func(e result.End, _ int) *result.HostSample {
				h := sample.Cores(60, "5/20/5/70", "0/5/0/95")
				if e == result.Server {
					h = sample.Cores(60, cores...)
					h.WorkerLoad = &load
				}
				return h
			}
		}
	}
	busy, quiet := at(0.97, "5/70/20/5", "0/5/0/95"), at(0.3, "5/20/5/70", "0/5/0/95")
	for _, c := range []struct {
		code, certainty string
		facts           result.Facts
		change          func(*sample.Test)
	}{
		{diagnose.OffloadOff, diagnose.Likely, result.Facts{Kind: "physical", Off: []string{"rx-gro"}}, busy},
		{diagnose.OffloadOff, diagnose.Possible, result.Facts{Kind: "physical", Off: []string{"rx-gro"}}, quiet},
		{diagnose.SmallRing, diagnose.Possible, result.Facts{RingNow: ptr(256), RingMax: ptr(4096), Missed: ptr(int64(812))}, quiet},
		{diagnose.Distance, diagnose.Likely, result.Facts{NUMANode: ptr(1), NUMANodes: ptr(2), NearCPUs: "8-15"}, busy},
		{diagnose.TableFull, diagnose.Likely, result.Facts{Conntrack: ptr(0.97), TrackedMax: ptr(int64(65536))}, quiet},
		{diagnose.SlowClock, diagnose.Likely, result.Facts{MHz: ptr(2600), NowMHz: ptr(1200), Governor: "schedutil"}, busy},
		{diagnose.EmulatedCard, diagnose.Likely, result.Facts{Emulated: true, Driver: "e1000"}, quiet},
		{diagnose.SingleQueue, diagnose.Possible, result.Facts{QueuesNow: ptr(1), QueuesMax: ptr(8)}, quiet},
		{diagnose.SingleQueue, diagnose.Likely, result.Facts{QueuesNow: ptr(1), QueuesMax: ptr(8)}, at(0.5, "2/6/90/2")},
		{diagnose.Wireless, diagnose.Likely, result.Facts{Kind: "wireless"}, quiet},
	} {
		for _, tells := range []bool{true, false} {
			vs := judged(result.Facts{}, c.change, func(t *sample.Test) {
				if t.Server.Name, t.Client.Name = "db2", "web1"; tells {
					t.Server.Settings = &c.facts
				}
			})
			v := find(vs, c.code)
			if (v != nil) != tells {
				t.Errorf("%s, told %v: %+v", c.code, tells, v)
				continue
			}
			if v != nil && (v.Host != result.Server || v.Certainty != c.certainty || !strings.Contains(v.Summary, "db2") || strings.Contains(v.Summary, "web1")) {
				t.Errorf("%s: %+v", c.code, *v)
			}
		}
	}
}

// Two namespaces of one machine tell the same: it is said once.
func TestServerNotesOfOneMachine(t *testing.T) {
	facts := result.Facts{Conntrack: ptr(0.97), TrackedMax: ptr(int64(65536))}
	n := 0
	for _, v := range judged(facts, func(t *sample.Test) {
		for _, h := range []*result.Host{&t.Client, &t.Server} {
			h.Name, h.SystemInfo, h.OS = "vm", "Linux vm 6.1", "linux"
		}
		t.Server.Settings = &facts
	}) {
		if v.Code == diagnose.TableFull {
			n++
		}
	}
	if n != 1 {
		t.Errorf("said %d times", n)
	}
}

// The other end's own limit says whether somebody made it small or it is the system's.
func TestToldLimitDecides(t *testing.T) {
	held := func(window int64) func(*sample.Test) {
		return func(t *sample.Test) {
			t.Rates, t.RTT, t.IdleRTT, t.Window, t.RwndLim = sample.Flat(float64(window)*8/0.1, 10), 100000, 99800, window, 0.93
		}
	}
	for _, c := range []struct {
		name   string
		window int64
		told   *[3]int64
		code   string
	}{
		{"a window of 2 MB, nothing told", 2 << 20, nil, diagnose.ReceiveWindow},
		{"a window of 2 MB of the system's 6", 2 << 20, &[3]int64{4096, 131072, 6 << 20}, diagnose.Autotuning},
		{"a window of 3 MB, nothing told", 3 << 20, nil, diagnose.Autotuning},
		{"a window of 3 MB, since 5 are set", 3 << 20, &[3]int64{4096, 131072, 5 << 20}, diagnose.ReceiveWindow},
	} {
		vs := judgedAt(0.0998, result.Facts{}, held(c.window), func(t *sample.Test) {
			if c.told != nil {
				t.Server.Settings = &result.Facts{TCPRead: c.told}
			}
		})
		if len(vs) == 0 || vs[0].Code != c.code || vs[0].Host != result.Server {
			t.Errorf("%s: %+v", c.name, vs)
		}
	}
}

// Window scaling that is gone: at the end that says so, else on the way.
func TestToldScaling(t *testing.T) {
	for _, c := range []struct {
		name        string
		here, there *bool
		host        result.End
		certainty   string
		words       string
	}{
		{"both offer it", ptr(true), ptr(true), "", diagnose.Likely, "since both ends offer it"},
		{"off there", ptr(true), ptr(false), result.Server, diagnose.Proven, "on db2: net.ipv4.tcp_window_scaling is off"},
		{"off here", ptr(false), ptr(true), result.Client, diagnose.Proven, "here: net.ipv4.tcp_window_scaling is off"},
		{"not told", ptr(true), nil, "", diagnose.Likely, "or at an end that has it switched off"},
	} {
		test := sample.New()
		test.Rates, test.RTT, test.IdleRTT, test.Window, test.RwndLim = sample.Flat(5.2e6, 10), 100000, 99800, 65535, 0.93
		test.Client.Name, test.Server.Name = "web1", "db2"
		if c.there != nil {
			test.Server.Settings = &result.Facts{Scaling: c.there}
		}
		d := stage("up-1", test)
		for i := range d.Run.Streams {
			d.Run.Streams[i].TCP.Last.WScale = [2]uint8{}
		}
		v := find(diagnose.Judge([]method.Done{idleStage(0.1), d}, &result.Facts{Scaling: c.here}), diagnose.ScalingLost)
		if v == nil || v.Host != c.host || v.Certainty != c.certainty || !strings.Contains(v.Summary, c.words) {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// The clock under load counts, where it was read: what a core did before, asleep, does not.
func TestSlowClockUnderLoad(t *testing.T) {
	facts := result.Facts{MHz: ptr(2600), NowMHz: ptr(800), Governor: "schedutil"}
	at := func(mhz int) func(*sample.Test) {
		return func(t *sample.Test) {
			cored(0.97, "5/70/20/5", "0/5/0/95")(t)
			before := t.Hosts
			t.Hosts = func(e result.End, row int) *result.HostSample {
				h := before(e, row)
				h.MHz = &mhz
				return h
			}
		}
	}
	if v := find(judged(facts, at(2600)), diagnose.SlowClock); v != nil {
		t.Errorf("full speed under load: %+v", *v)
	}
	v := find(judged(facts, at(1200)), diagnose.SlowClock)
	if v == nil || v.Certainty != diagnose.Likely || value(v, "mhz") != 1200 || !strings.Contains(v.Evidence[0], "when the load had lasted") {
		t.Errorf("slow under load: %+v", v)
	}
}
