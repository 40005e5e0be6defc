package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/units"
)

// pathText is the path as written: a queue in bandwidth-delay products can only be
// computed when all of it is known.
type pathText struct {
	node ast.Node
	mtu  int
	seed uint64
	rtt  time.Duration
	dirs [2]directionText
	both bool // "both" was given
	each bool // "up" or "down" was given
}

type directionText struct {
	link.Config
	given    bool
	hasDelay bool
	queue    string
	queueAt  ast.Node
	path     string
	node     ast.Node

	jitter    link.Jitter // of Config.Jitter, without keep_order
	keepOrder bool
	faultsOn  string
}

func (p *pathText) read(r *reader, n ast.Node, at string) {
	p.node = n
	direction := func(i int) handler {
		return func(n ast.Node, at string) {
			p.each = true
			p.dirs[i].read(r, n, at)
		}
	}
	r.mapping(n, at, map[string]handler{
		"mtu": r.integer(&p.mtu, forward.MinMTU, forward.MaxMTU),
		"seed": r.value(func(s string) (err error) {
			if p.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
				err = fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
			}
			return err
		}),
		"rtt":  r.duration(&p.rtt, 0, 2*link.MaxDelay),
		"up":   direction(0),
		"down": direction(1),
		"both": func(n ast.Node, at string) {
			p.both = true
			p.dirs[0].read(r, n, at)
			p.dirs[1] = p.dirs[0]
		},
	})
}

func (d *directionText) read(r *reader, n ast.Node, at string) {
	d.given, d.path, d.node = true, at, n
	fields := d.faultFields(r)
	fields["rate"] = r.rate(&d.BitsPerSecond)
	fields["delay"] = func(n ast.Node, at string) {
		d.hasDelay = true
		r.duration(&d.Delay, 0, link.MaxDelay)(n, at)
	}
	fields["queue"] = func(n ast.Node, at string) {
		d.queueAt = n
		r.text(&d.queue)(n, at)
	}
	r.mapping(n, at, fields)
}

// config finds the path's faults and computes what depends on several keys.
func (p *pathText) config(r *reader) forward.Config {
	cfg := forward.Config{MTU: p.mtu}
	if p.both == p.each || !p.dirs[0].given || !p.dirs[1].given {
		r.fail(p.node, "path", "give either both, or up and down")
		return cfg
	}
	hasRTT := r.given["path.rtt"]
	for i := range p.dirs {
		d := &p.dirs[i]
		if d.hasDelay == hasRTT {
			r.fail(p.node, "path", "give either rtt or the delay of each direction")
			return cfg
		}
		if hasRTT {
			d.Delay = p.rtt / 2
		}
	}
	for i := range p.dirs {
		d := &p.dirs[i]
		if i == 1 && p.both {
			d.Config = p.dirs[0].Config
		} else {
			p.setQueue(r, d)
			d.faults(r)
		}
		// The directions draw their faults apart from each other.
		d.Seed = p.seed + uint64(i)
		cfg.Links[i] = d.Config
		cfg.DataOnly[i] = d.faultsOn == faultsOnData
	}
	return cfg
}

// setQueue reads "100 packets", "700kB" or "1 bdp".
func (p *pathText) setQueue(r *reader, d *directionText) {
	switch {
	case d.queue == "" && d.BitsPerSecond == 0:
		return // infinitely fast: no queue ever forms
	case d.queue == "":
		r.fail(p.node, d.path+".queue", "is missing: a link with a rate has one")
		return
	case d.BitsPerSecond == 0:
		r.fail(d.queueAt, d.path+".queue", "needs a rate: an infinitely fast link has no queue")
		return
	}
	fail := func(format string, args ...any) { r.fail(d.queueAt, d.path+".queue", format, args...) }
	if count, ok := strings.CutSuffix(d.queue, "packets"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || n < 1 {
			fail("%q is not a number of packets from 1", d.queue)
		}
		d.QueuePackets = n
		return
	}
	if factor, ok := strings.CutSuffix(d.queue, "bdp"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
		if err != nil || !(f > 0 && f <= 1000) {
			fail("%q is not a number of bandwidth-delay products, above 0 and at most 1000", d.queue)
			return
		}
		rtt := p.dirs[0].Delay + p.dirs[1].Delay
		d.QueueBytes = int64(f * float64(d.BitsPerSecond) / 8 * rtt.Seconds())
	} else {
		v, err := units.ParseSize(d.queue)
		if err != nil {
			fail("%w", err)
			return
		}
		d.QueueBytes = int64(v)
	}
	if d.QueueBytes < int64(p.mtu) {
		fail("%q is %d bytes, less than one packet of %d", d.queue, d.QueueBytes, p.mtu)
	}
}
