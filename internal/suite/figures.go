package suite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
)

// Demand is what a figure of an item must be. Without an Op it is only reported.
type Demand struct {
	Figure string  `json:"figure"`
	Op     string  `json:"op,omitempty"` // ">=", "<="
	Bound  float64 `json:"bound,omitempty"`
	// Of is what Bound is a share of: "ideal" (of TCP on this link, or what its window lets
	// through), "link", or the id of an item measured before; "" = Bound is in the figure's unit.
	Of string `json:"of,omitempty"`
}

// figure is a kind of value: how it is read and spelled.
type figure struct {
	name  string // in sentences
	unit  string // of package result's Criterion
	kinds []Kind // items that have it
	more  bool   // larger is better
	read  func(string) (float64, error)
}

var figures = map[string]figure{
	"throughput":     {"throughput", "bit/s", []Kind{TCPSingle, TCPMulti, TCPBoth, UDPFull}, true, readRate},
	"efficiency":     {"efficiency", "ratio", []Kind{TCPSingle, TCPMulti, TCPBoth}, true, readShare},
	"loss":           {"loss", "ratio", []Kind{UDPFull, UDPSmall}, false, readShare},
	"loss_loaded":    {"loss of small packets beside the load", "ratio", []Kind{UDPSmall}, false, readShare},
	"duplicates":     {"duplicates", "", []Kind{UDPFull, UDPSmall}, false, readCount},
	"reordering":     {"reordering", "ratio", []Kind{UDPFull, UDPSmall}, false, readShare},
	"pdv_p99":        {"delay variation (p99)", "s", []Kind{UDPFull, UDPSmall}, false, readTime},
	"jitter":         {"jitter (RFC 3550, mean)", "s", []Kind{UDPFull, UDPSmall}, false, readTime},
	"rise_p95":       {"rise of the delay (p95)", "s", []Kind{Latency}, false, readTime},
	"loss_free_rate": {"loss-free rate", "bit/s", []Kind{LossFree}, true, readRate},
	"path_mtu":       {"path MTU", "bytes", []Kind{Precheck}, true, readCount},
}

// figuresOf are the words of an item's kind.
func figuresOf(k Kind) (out []string) {
	for _, w := range slices.Sorted(maps.Keys(figures)) {
		if slices.Contains(figures[w].kinds, k) {
			out = append(out, w)
		}
	}
	return out
}

func readRate(s string) (float64, error) {
	r, err := units.ParseRate(s)
	return float64(r), err
}

// readShare reads 0.1% or 1e-5.
func readShare(s string) (float64, error) {
	text, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is no share: write 0.1 %% or 0.001", s)
	}
	return v, nil
}

func readCount(s string) (float64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is no count: write a whole number from 0", s)
	}
	return float64(v), nil
}

// readTime wants a unit: 5 alone would be 5 s, and ms are what people mean.
func readTime(s string) (float64, error) {
	if s = strings.TrimSpace(s); s != "" && strings.ContainsRune("0123456789.", rune(s[len(s)-1])) {
		return 0, fmt.Errorf("%q has no unit: write %[1]sms", s)
	}
	d, err := units.ParseDuration(s)
	return d.Seconds(), err
}

// parseDemand reads ">= 940 Mbit/s", ">= 95 % of ideal", "<= 1e-5", "report".
func parseDemand(word, text string) (Demand, error) {
	f := figures[word]
	d := Demand{Figure: word}
	text = strings.TrimSpace(text)
	if text == "report" {
		return d, nil
	}
	for _, op := range []string{">=", "<="} {
		if rest, ok := strings.CutPrefix(text, op); ok {
			d.Op, text = op, strings.TrimSpace(rest)
		}
	}
	switch {
	case d.Op == "":
		return d, fmt.Errorf("%q: write \">= VALUE\" or \"<= VALUE\", \"report\" (measured, not judged) or \"none\"", text)
	case f.more != (d.Op == ">="):
		return d, fmt.Errorf("%s %s: of %s more is %s", d.Op, text, f.name, map[bool]string{true: "better: write >=", false: "worse: write <="}[f.more])
	}
	if share, of, ok := strings.Cut(text, " of "); ok {
		if f.unit != "bit/s" {
			return d, fmt.Errorf("%q: only rates can be shares of something", text)
		}
		v, err := readShare(strings.TrimSpace(share))
		if err != nil {
			return d, err
		}
		d.Bound, d.Of = v, strings.TrimSpace(of)
		return d, nil
	}
	v, err := f.read(text)
	d.Bound = v
	return d, err
}

// spell prints a figure with its unit.
func spell(unit string, v float64) string {
	switch unit {
	case "bit/s":
		return units.BitRate(v + 0.5).String()
	case "ratio":
		return shareText(v)
	case "s":
		return conclude.Time(v)
	case "bytes":
		return strconv.FormatFloat(v, 'f', 0, 64) + " bytes"
	}
	return conclude.Grouped(int64(v + 0.5))
}

// shareText prints a share: per cent where people think in it, else as a power of ten.
func shareText(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 0.9 && v < 1:
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	case v >= 1:
		return strconv.FormatFloat(100*v, 'f', 0, 64) + " %"
	case v >= 0.0005:
		return strconv.FormatFloat(100*v, 'g', 3, 64) + " %"
	}
	return strings.Replace(strconv.FormatFloat(v, 'g', 2, 64), "e-0", "e-", 1)
}

// Text is a demand as a person reads it: "≥ 95 % of ideal".
func (d Demand) Text() string {
	f := figures[d.Figure]
	op := map[string]string{">=": "≥ ", "<=": "≤ "}[d.Op]
	switch {
	case d.Op == "":
		return f.name + ": reported"
	case d.Of != "":
		return f.name + " " + op + strconv.FormatFloat(100*d.Bound, 'g', 4, 64) + " % of " + d.Of
	}
	return f.name + " " + op + spell(f.unit, d.Bound)
}
