package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/result"
)

// nicOf is the interface of an end: the run's, or the one of recorded facts, which stand for
// this host as a whole.
func (c *Case) nicOf(run *result.Run, e result.End) *result.NIC {
	if e == result.Client && c.Facts.Recorded && c.Facts.NIC != "" {
		return &result.NIC{Name: c.Facts.NIC, Driver: c.Facts.Driver, SpeedBPS: c.Facts.SpeedBPS, Duplex: c.Facts.Duplex, MTU: c.Facts.MTU, Queues: c.Facts.QueuesNow}
	}
	if h := run.Hosts.Of(e); h != nil {
		return h.NIC
	}
	return nil
}

// settings are what an end told of itself: this host's own, or the other end's where it trusts us
// (serve --facts full, or a login). nil = not known.
func (c *Case) settings(e result.End) *result.Facts {
	if e == result.Client {
		return &c.Facts
	}
	for _, d := range c.History {
		if d.Run == nil {
			continue
		}
		if h := d.Run.Hosts.Of(e); h != nil && h.Settings != nil {
			return h.Settings
		}
	}
	return nil
}

// tellers are the ends whose settings are known, each machine once.
func (c *Case) tellers() []result.End {
	ends := []result.End{result.Client}
	if run := c.first(); run != nil && c.settings(result.Server) != nil && !conclude.SharedCores(run) {
		ends = append(ends, result.Server)
	}
	return ends
}

// nicName names the interface of an end.
func (c *Case) nicName(e result.End) string {
	if run := c.first(); run != nil {
		if n := c.nicOf(run, e); n != nil {
			return n.Name
		}
	}
	return "the interface"
}

// replayed marks what rests on facts that were recorded on another machine.
func replayed(f *result.Facts) string {
	if f != nil && f.Recorded {
		return " (recorded facts)"
	}
	return ""
}

// inList reports that a CPU is in a list as the kernel writes it ("0-7,16-23").
func inList(list string, cpu int) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(part string) bool {
		first, last, several := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			return false
		}
		b := a
		if several {
			if b, err = strconv.Atoi(last); err != nil {
				return false
			}
		}
		return a <= cpu && cpu <= b
	})
}
