package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

const line4711 = `# what was agreed
name: Line 4711
profile: wan
link: 200M
contract: K-2026-17
mtu: 1400
seed: 7
items:
  - test: udp-full
    rate: 90 %
    payload: 1300
    loss: "<= 1e-5"
    duplicates: none
  - test: tcp-multi
    streams: 12
    rounds: 5
    time: 10s
    throughput: ">= 180 Mbit/s"
    efficiency: report
  - test: udp-small
    spacing: 20ms
    time: 20s
    pdv_p99: "<= 5 ms"
  - {test: tcp-single, directions: [down], throughput: ">= 50 % of A2", id: single}
`

func TestParse(t *testing.T) {
	text := strings.Replace(line4711, ">= 50 % of A2", ">= 80 % of ideal", 1)
	s, err := suite.Parse("f.yaml", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "Line 4711" || s.Class != suite.WAN || s.Link != 200*units.MbitPerSec || s.Contract != "K-2026-17" || s.MTU != 1400 || s.Seed != 7 {
		t.Errorf("%+v", s)
	}
	var got []string
	for _, it := range s.Items {
		line := it.ID
		for _, d := range it.Demands {
			line += "; " + d.Text()
		}
		got = append(got, line)
	}
	want := []string{
		"A0", "single; throughput ≥ 80 % of ideal", "A2; throughput ≥ 180 Mbit/s; efficiency: reported",
		"A4; loss ≤ 1e-5; reordering ≤ 0.0001", "A5; delay variation (p99) ≤ 5.00 ms; loss ≤ 0.1 %; loss of small packets beside the load ≤ 0.1 %",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	full, many, single := s.Item("A4"), s.Item("A2"), s.Item("single")
	if full.Share != 0.9 || full.Payload != 1300 || many.Streams != 12 || many.Rounds != 5 || many.Time != 10*time.Second || len(single.Directions) != 1 || single.Directions[0] != result.Down {
		t.Errorf("%+v\n%+v\n%+v", full, many, single)
	}
	open, err := suite.Parse("f.yaml", []byte("items:\n  - {test: tcp-multi, rounds: auto, streams: knee}\n  - {test: tcp-single, rounds: 4}\n"), "")
	if a1, a2 := open.Item("A1"), open.Item("A2"); err != nil || a1.Auto || a1.Rounds != 4 || !a2.Auto || a2.Streams != 0 {
		t.Errorf("%v: %+v %+v", err, a1, a2)
	}
	if s, err := suite.Parse("f.yaml", []byte("link: 1G\n"), suite.LAN); err != nil || len(s.Items) != 8 || s.Class != suite.LAN {
		t.Errorf("without items: %d, %v", len(s.Items), err)
	}
}

// Every fault is told, with its line and what would be right.
func TestParseFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "links: 1G\n", "f.yaml:1:1: links: unknown key; there are: contract, items, link"},
		{"twice", "link: 1G\nlink: 2G\n", "f.yaml:2:1: link: given twice"},
		{"profile", "profile: moon\n", `f.yaml:1:10: profile: there are lan, metro and wan, not "moon"`},
		{"no test", "items:\n  - time: 3s\n", "f.yaml:2:5: items[0]: says no test"},
		{"bad test", "items:\n  - test: ping\n", `there is no test "ping"; there are: precheck, tcp-single`},
		{"key of another test", "items:\n  - test: tcp-single\n    spacing: 1ms\n", "f.yaml:3:5: items[0].spacing: has no meaning for tcp-single"},
		{"figure of another test", "items:\n  - test: latency\n    loss: \"<= 1 %\"\n", "items[0].loss: has no meaning for latency"},
		{"wrong way", "items:\n  - test: udp-full\n    loss: \">= 1 %\"\n", "of loss more is worse: write <="},
		{"no operator", "items:\n  - test: tcp-multi\n    throughput: 940 Mbit/s\n", `write ">= VALUE"`},
		{"no unit", "items:\n  - test: udp-small\n    pdv_p99: \"<= 5\"\n", `"5" has no unit: write 5ms`},
		{"share of a time", "items:\n  - test: udp-small\n    pdv_p99: \"<= 5 % of ideal\"\n", "only rates can be shares"},
		{"of nothing", "items:\n  - test: tcp-multi\n    throughput: \">= 50 % of A9\"\n", `there is no item "A9" before it`},
		{"of a later one", line4711, `there is no item "A2" before it`},
		{"both without multi", "items:\n  - test: tcp-both\n", "share of A2, which is not measured: add tcp-multi"},
		{"same id", "items:\n  - test: tcp-multi\n  - test: tcp-multi\n", "item A2 is there twice"},
		{"rounds", "items:\n  - test: tcp-multi\n    rounds: 0\n", `rounds: "0": must be a whole number, 1 to 100`},
		{"rounds of datagrams", "items:\n  - test: udp-full\n    rounds: auto\n", "rounds: auto: only TCP's throughput is measured until it settles; udp-full wants a number"},
		{"streams", "items:\n  - test: tcp-multi\n    streams: many\n", `streams: "many": must be a whole number`},
		{"id", "items:\n  - {test: tcp-multi, id: a b}\n", "letters and digits only"},
		{"list", "items: none\n", "items: want a list"},
		{"two documents", "link: 1G\n---\nlink: 2G\n", "want one YAML document, found 2"},
		{"anchor", "name: &x y\n", "name: want one value"},
		{"direction", "items:\n  - {test: tcp-multi, directions: [up, up]}\n", "up and down, each once"},
		{"two at once", "links: 1\nitems:\n  - test: tcp-multi\n    rounds: x\n", "f.yaml:4:13: items[0].rounds"},
	} {
		_, err := suite.Parse("f.yaml", []byte(c.text), "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", c.name, err, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	s := suite.Default(suite.Metro, 0)
	s.MTU = 100
	err := s.Validate()
	if err == nil || !strings.Contains(err.Error(), "link's speed is not known") || !strings.Contains(err.Error(), "mtu: 100") {
		t.Errorf("%v", err)
	}
	s = suite.Default(suite.Metro, units.GbitPerSec)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(line4711))
	f.Add([]byte("items:\n  - {test: udp-full, rate: 800M}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := suite.Parse("f", data, "")
		if err == nil && len(s.Items) == 0 {
			t.Error("a suite without items was taken")
		}
	})
}
