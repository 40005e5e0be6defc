package diagnose

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

func rate(bps float64) string { return units.BitRate(bps + 0.5).String() }

func size(bytes float64) string { return units.ByteSize(bytes + 0.5).IEC() }

func ms(s float64) string { return conclude.Time(s) }

func percent(share float64) string {
	switch p := 100 * share; {
	case p == 0:
		return "0 %"
	case p < 0.0095:
		return fmt.Sprintf("%.1e", share)
	case p < 9.95:
		return fmt.Sprintf("%.2g %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// host names an end for people.
func (c *Case) host(e result.End) string {
	if run := c.first(); run != nil {
		return run.EndName(e)
	}
	return string(e)
}

// place is where advice is followed: an end, or this machine where it plays both.
func (c *Case) place(e result.End) string {
	if c.loopback() {
		return "this machine"
	}
	return c.host(e)
}

// way is "a → b" of a direction.
func (c *Case) way(d result.Direction) string {
	return c.host(d.Sender()) + " → " + c.host(d.Receiver())
}

// osOf is the system of an end, "" when it is not known.
func (c *Case) osOf(e result.End) string {
	for _, d := range c.History {
		if d.Run != nil {
			if h := d.Run.Hosts.Of(e); h != nil && h.OS != "" {
				return h.OS
			}
		}
	}
	return ""
}

// on puts advice of one platform under its name, or of both where the system is not known.
func (c *Case) on(e result.End, linux, windows []string) []string {
	var out []string
	add := func(system string, lines []string) {
		for _, l := range lines {
			out = append(out, fmt.Sprintf("on %s (%s): %s", c.place(e), system, l))
		}
	}
	switch c.osOf(e) {
	case "linux":
		add("Linux", linux)
	case "windows":
		add("Windows", windows)
	default:
		add("if it is Linux", linux)
		add("if it is Windows", windows)
	}
	return out
}

// target is the peer as the user typed it.
func (c *Case) target() string {
	if c.self() {
		return "self"
	}
	if run := c.first(); run != nil && run.Test.Target != "" {
		return run.Test.Target
	}
	return "HOST"
}

// self reports that the peer is a server of ours on a port of the moment.
func (c *Case) self() bool { return c.loopback() && c.extended() }

// again is a command of fullbore test in a direction.
func (c *Case) again(d result.Direction, words string) string {
	target, self := c.target(), c.self()
	port := ""
	if run := c.first(); run != nil && run.Test.Port != 0 && run.Test.Port != 5201 && !self {
		port = fmt.Sprintf(" -p %d", run.Test.Port)
	}
	return strings.TrimSpace(fmt.Sprintf("fullbore test %s%s --%s %s", target, port, d, words))
}

// draft begins a verdict about a direction.
func draft(code, certainty string, l *leg, stages ...*flow) result.Verdict {
	v := result.Verdict{Code: code, Certainty: certainty, Evidence: []string{}, Advice: []string{}}
	if l != nil {
		v.Direction = string(l.dir)
		if one := l.one(); one != nil && one.usable() {
			r := one.rate
			v.Measured = &r
		}
	}
	for _, f := range stages {
		if f != nil {
			v.Stages = append(v.Stages, f.name)
		}
	}
	return v
}

func put(v *result.Verdict, name string, value float64, unit string) {
	v.Values = append(v.Values, result.Value{Name: name, Value: value, Unit: unit})
}

func say(v *result.Verdict, format string, args ...any) {
	v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...))
}

func advise(v *result.Verdict, lines ...string) { v.Advice = append(v.Advice, lines...) }

func reach(v *result.Verdict, bps float64) {
	if bps > 0 {
		v.Reach = &bps
	}
}

// streamsText says what several streams did.
func streamsText(f *flow) string {
	word := "streams"
	if f.streams == 1 {
		word = "stream"
	}
	return fmt.Sprintf("%d %s: %s", f.streams, word, rate(f.rate))
}
