package html

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/result"
)

func figure(v float64) *float64 { return &v }

func TestSweepPage(t *testing.T) {
	rep := &result.Report{
		Schema: result.Schema, Kind: "sweep", Inputs: []string{"streams", "10.0.0.1"}, Summary: "4 streams carry 400 Mbit/s up.",
		Sweep: &result.Sweep{Parts: []result.SweepPart{
			{Series: "streams", Axis: "streams", Direction: "up", Knee: 4, Marginal: 4, Best: 8, Cheapest: 4, HostKnee: "a core was <99> % busy there"},
			{Series: "window", Axis: "window", Direction: "up", Best: 131072, Cheapest: 65536},
		}},
	}
	for i, x := range []float64{1, 2, 4, 8} {
		y := []float64{1e8, 2e8, 4e8, 4.01e8}[i]
		rep.Curve = append(rep.Curve, result.Point{X: x, Y: y, Series: "streams", Direction: "up", Low: figure(y * 0.9), High: figure(y * 1.1), Values: []float64{y, y}})
	}
	for _, x := range []float64{65536, 131072, 0} {
		rep.Curve = append(rep.Curve, result.Point{X: x, Y: 3e8 + x, Series: "window", Direction: "up", Predicted: figure(3.5e8)})
	}
	var b bytes.Buffer
	if err := WriteReport(&b, rep); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"Throughput up over streams", "Throughput up over window of a stream", "knee (Kneedle) 4", "cheapest within 3 % of it 4", "the system&#39;s own window",
		"what the window allows", "least of the rounds", "a core was &lt;99&gt; % busy there",
	} {
		if !strings.Contains(page, want) && !strings.Contains(page, strings.ReplaceAll(want, "&#39;", "'")) && !strings.Contains(page, strings.ReplaceAll(want, "&#39;", "’")) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, lacks := range []string{`id="knee"`, "<99>"} {
		if strings.Contains(page, lacks) {
			t.Errorf("the page has %q", lacks)
		}
	}
}

func TestRoundsPlot(t *testing.T) {
	rep := &result.Report{Rounds: []result.Rounds{
		{Of: "up", Figure: "goodput", Unit: "bit/s", Values: []*float64{figure(1e8), nil, figure(3e8)}, Median: figure(2e8), Min: figure(1e8), Max: figure(3e8), Marked: []int{3}},
		{Of: "up", Figure: "loss", Unit: "ratio", Values: []*float64{figure(0), figure(0)}, Median: figure(0), Min: figure(0), Max: figure(0)},
	}}
	p := roundsPlot(rep)
	if p == nil || !strings.Contains(p.Text, "median 200 Mbit/s of 2 rounds") || !strings.Contains(p.Text, "far from the others: 3") {
		t.Errorf("%+v", p)
	}
	if roundsPlot(&result.Report{}) != nil {
		t.Error("a plot of no rounds")
	}
}
