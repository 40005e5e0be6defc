package result

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// TestMilestones: a milestone keeps its place among the events through fold, storing
// and replay.
func TestMilestones(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 7, 7, 17, 0, time.UTC)
	m := func(code string) Event {
		return Event{Kind: KindMilestone, End: Server, Milestone: &Milestone{Code: code, Time: at}}
	}
	row := func(e End, i int) Event {
		return Event{Kind: KindInterval, End: e, Interval: &Interval{End: e, Index: i}}
	}
	head := Run{End: Server, NTTTCP: &NTTTCP{Dialect: "linux"}, Streams: []Stream{{ID: 1, Direction: Up}}}
	total := head.Streams[0]
	total.Receiver = &Total{End: 2, Bytes: 1000}
	fold := Fold([]Event{
		m("a"),
		{Kind: KindPrepared, Head: &Run{End: Server, NTTTCP: head.NTTTCP}},
		m("b"),
		{Kind: KindConnected, Head: &Run{End: Server, NTTTCP: head.NTTTCP}},
		{Kind: KindStart, Head: &head},
		row(Client, 0), m("c"), row(Server, 0), m("d"), m("e"), row(Server, 1), row(Client, 1), m("f"),
		{Kind: KindFinish, Finish: &Finish{Streams: []Stream{total}, Machines: &HostTotals{Server: &HostTotal{Cores: 2}}}},
		m("g"),
		{Kind: KindError, Err: &Error{Code: "x"}},
	})
	want := []struct {
		code, stage string
		rows        int
	}{{"a", "before", 0}, {"b", "run", 0}, {"c", "run", 0}, {"d", "run", 1}, {"e", "run", 1}, {"f", "run", 2}, {"g", "after", 0}}
	if len(fold.Milestones) != len(want) {
		t.Fatalf("%+v", fold.Milestones)
	}
	for i, w := range want {
		if g := fold.Milestones[i]; g.Code != w.code || g.Stage != w.stage || g.Rows != w.rows || g.End != Server {
			t.Errorf("%d: %+v, want %+v", i, g, w)
		}
	}
	doc, err := json.Marshal(fold)
	if err != nil {
		t.Fatal(err)
	}
	var stored Run
	if err := json.Unmarshal(doc, &stored); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(Fold(Unfold(&stored)))
	if err != nil {
		t.Fatal(err)
	}
	if string(doc) != string(again) {
		t.Errorf("replayed:\n%s\nfolded:\n%s", again, doc)
	}
	var order string
	for _, e := range Unfold(&stored) {
		switch e.Kind {
		case KindMilestone:
			order += e.Milestone.Code
		case KindInterval:
			order += map[End]string{Client: "<", Server: ">"}[e.End]
		case KindFinish:
			order += "."
		}
	}
	if order != "abc<>de><f.g" && order != "ab<c>de><f.g" && order != "abc<>de>f<.g" {
		t.Errorf("told in the order %s", order)
	}
	if got := fold.Machines.Of(Server); got == nil || got.Cores != 2 || fold.Machines.Of(Client) != nil {
		t.Errorf("machines: %+v", fold.Machines)
	}
}

// TestHostTotal checks the formulas against a real receiver's figures (NTTTCP for Linux
// 1.4.3: 9225273916 bytes in 2.0006 s, 2 cores of 2300 MHz, none idle: 1.00 cycles/byte,
// 137.65 % busy; 156246 packets each way and 55845 interrupts: 5.596).
func TestHostTotal(t *testing.T) {
	t.Parallel()
	mhz, process, interrupts := 2300.0, int64(2_753_825_900), int64(55845)
	h := &HostTotal{
		Cores: 2, MHz: &mhz, Process: &process, Interrupts: &interrupts,
		CPU:     &CPUTime{User: 19e7, System: 222e7, SoftIRQ: 159e7},
		Packets: &PacketCount{Sent: 156246, Received: 156246},
	}
	near := func(name string, got, want, by float64) {
		if math.Abs(got-want) > by {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	near("user", h.CPU.Percent(h.CPU.User), 4.75, 1e-9)
	near("system", h.CPU.Percent(h.CPU.System), 55.5, 1e-9)
	near("busy", h.BusyPercent(2), 100, 1e-9)
	near("cycles", h.CyclesPerByte(9225273916, 2.0006), 0.9975, 0.0001)
	near("process", h.ProcessPercent(2.0006), 137.65, 0.005)
	near("packets per interrupt", h.PacketsPerInterrupt(), 5.596, 0.0005)
	near("per second", PerSecond(34, 2.000587), 16.995, 0.0005)
	h.CPU.Idle = 400e7 // half of the time
	near("half idle", h.CyclesPerByte(9225273916, 2.0006), 0.4987, 0.0001)
	near("half busy", h.BusyPercent(4), 50, 1e-9)

	// What is not known, and what would divide by zero, is 0.
	var none *HostTotal
	zero := int64(0)
	for name, got := range map[string]float64{
		"nil cycles": none.CyclesPerByte(1, 1), "nil process": none.ProcessPercent(1), "nil packets": none.PacketsPerInterrupt(),
		"no bytes": h.CyclesPerByte(0, 1), "no time": PerSecond(1, 0), "empty": CPUTime{}.Percent(1), "nil busy": none.BusyPercent(1), "no time busy": h.BusyPercent(0),
		"no interrupts": (&HostTotal{Packets: h.Packets, Interrupts: &zero}).PacketsPerInterrupt(),
		"no clock":      (&HostTotal{Cores: 2, CPU: h.CPU}).CyclesPerByte(1, 1), "no ticks": (&HostTotal{MHz: &mhz, CPU: &CPUTime{}}).CyclesPerByte(1, 1),
	} {
		if got != 0 {
			t.Errorf("%s = %v", name, got)
		}
	}
}
