package diagnose

import (
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// cutCase is a path of that MTU between interfaces of 1500, on which datagrams were lost: of those
// that fit one packet, and of those of 4000 bytes (socket of them in the receiver's socket).
func cutCase(mtu int, wholeSent, wholeLost, cutSent, cutLost, socket int64) *Case {
	nic := &result.Host{NIC: &result.NIC{Name: "eth0", MTU: 1500}}
	hosts := result.Hosts{Client: nic, Server: nic}
	datagrams := func(name string, n int, u result.UDPLoss) *flow {
		run := &result.Run{Test: result.Test{Transport: "udp", BlockSize: n}, Hosts: hosts}
		u.Ratio = float64(u.Lost) / float64(u.Sent)
		u.Low, u.High = u.Ratio, u.Ratio+3/float64(u.Sent)
		run.Sums = []result.Sum{{Direction: result.Up, UDP: &result.UDPStream{Loss: &u}}}
		return &flow{name: name, run: run, dir: result.Up, rate: 4e6, arrived: true}
	}
	c := &Case{}
	one := lossy("up-1", 1, 1, 20000, 1)
	one.run.Hosts, one.mss = hosts, float64(mtu-52)
	c.Up = leg{dir: result.Up, case_: c, flows: []flow{one}}
	c.Up.udp = datagrams("up-udp", 1372, result.UDPLoss{Sent: wholeSent, Lost: wholeLost})
	c.Up.frag = datagrams("up-frag", 4000, result.UDPLoss{Sent: cutSent, Lost: cutLost, Socket: &socket})
	c.Down = leg{dir: result.Down, case_: c}
	c.History = []method.Done{{Step: method.Step{Name: "up-1"}, Run: one.run}}
	return c
}

func TestFragmentation(t *testing.T) {
	for _, k := range []struct {
		name      string
		c         *Case
		certainty string // "" = must not be said
	}{
		{"a narrow path, pieces vanish", cutCase(1400, 4000, 0, 250, 250, 0), Proven},
		{"a narrow path, pieces arrive", cutCase(1400, 4000, 0, 250, 0, 0), Likely},
		{"1 % of whole packets, 3 % of three pieces", cutCase(1400, 4000, 40, 250, 8, 0), Likely},
		{"pieces are lost far more often", cutCase(1500, 4000, 4, 250, 60, 0), Proven},
		{"a wide path, pieces vanish", cutCase(1500, 4000, 0, 250, 250, 0), Proven},
		{"a wide path, pieces arrive", cutCase(1500, 4000, 0, 250, 0, 0), ""},
		{"a wide path, as many as chance", cutCase(1500, 4000, 40, 250, 8, 0), ""},
		{"a wide path, lost in the socket", cutCase(1500, 4000, 0, 250, 60, 60), ""},
		{"nothing arrives at all", cutCase(1500, 4000, 4000, 250, 250, 0), ""},
		{"too few to tell", cutCase(1400, 4000, 0, 20, 20, 0), ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			vs := fragmentation(k.c)
			if k.certainty == "" {
				if len(vs) > 0 {
					t.Fatalf("it says %+v", vs)
				}
				return
			}
			if len(vs) != 1 || vs[0].Certainty != k.certainty || !vs[0].Note || len(vs[0].Evidence) == 0 || vs[0].Summary == "" {
				t.Fatalf("%+v", vs)
			}
			if v := vs[0].Values; v[0].Value != 1400 && v[0].Value != 1500 || v[2].Name != "pieces" || v[2].Value != 3 {
				t.Errorf("values %+v", v)
			}
		})
	}
}

// The stage is made where it can decide something, and never fast.
func TestFragmentsStage(t *testing.T) {
	narrow, wide := cutCase(1400, 4000, 0, 250, 0, 0), cutCase(1500, 4000, 0, 250, 0, 0)
	p := Planner{Budget: Default()}
	s := p.fragments(narrow, &narrow.Up)
	if s == nil || !s.Plan.AllowFragments || s.Plan.BlockSize != 4000 || s.Plan.Bitrate > 4e6 || s.Plan.Duration < 2*time.Second {
		t.Fatalf("%+v", s)
	}
	if s := p.fragments(wide, &wide.Up); s != nil {
		t.Errorf("a path like its ends is tried: %+v", s)
	}
	if s := (Planner{Budget: Deep()}).fragments(wide, &wide.Up); s == nil {
		t.Error("a deep diagnosis does not try it")
	}
	if s := (Planner{Budget: Quick()}).fragments(narrow, &narrow.Up); s != nil {
		t.Errorf("a quick one tries it: %+v", s)
	}
	narrow.Up.flows[0].rate = 200e3
	if s := p.fragments(narrow, &narrow.Up); s != nil {
		t.Errorf("too slow for enough datagrams: %+v", s)
	}
	narrow.Up.udp = nil
	if s := p.fragments(narrow, &narrow.Up); s != nil {
		t.Errorf("nothing to compare with: %+v", s)
	}
}
