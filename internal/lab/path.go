package lab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
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
	half bool
	hash link.Hash
}

type directionText struct {
	link.Config
	given    bool
	hasDelay bool
	queue    queueText
	path     string
	node     ast.Node

	jitter    link.Jitter // of Config.Jitter, without keep_order
	keepOrder bool
	faultsOn  string

	policerAt, shaperAt, classesAt ast.Node
	shaperQueue                    queueText
	classes                        []classText
	box                            forward.Box
	hasMembers                     bool
	members                        []memberText
}

func (p *pathText) read(r *reader, n ast.Node, at string) {
	p.node = n
	direction := func(i int) handler {
		return func(n ast.Node, at string) {
			p.each = true
			p.dirs[i].read(r, n, at)
		}
	}
	fields := p.fields(r)
	maps.Copy(fields, map[string]handler{
		"mtu": r.integer(&p.mtu, forward.MinMTU, forward.MaxMTU),
		"seed": r.Value(func(s string) (err error) {
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
	r.Mapping(n, at, fields)
}

func (d *directionText) read(r *reader, n ast.Node, at string) {
	d.given, d.path, d.node = true, at, n
	fields := d.memberFields(r)
	maps.Copy(fields, d.boxFields(r))
	fields["faults_on"] = r.oneOf(&d.faultsOn, faultsOnAll, faultsOnData)
	r.Mapping(n, at, fields)
}

// memberFields are the keys of a direction that a member of it may have too.
func (d *directionText) memberFields(r *reader) map[string]handler {
	fields := d.faultFields(r)
	maps.Copy(fields, d.wayFields(r))
	fields["rate"] = r.rate(&d.BitsPerSecond)
	fields["delay"] = func(n ast.Node, at string) {
		d.hasDelay = true
		r.duration(&d.Delay, 0, link.MaxDelay)(n, at)
	}
	fields["queue"] = d.queue.handler(r)
	return fields
}

// config finds the path's faults and computes what depends on several keys.
func (p *pathText) config(r *reader) forward.Config {
	cfg := forward.Config{MTU: p.mtu, HalfDuplex: p.half, Hash: p.hash}
	if p.both == p.each || !p.dirs[0].given || !p.dirs[1].given {
		r.Fail(p.node, "path", "give either both, or up and down")
		return cfg
	}
	hasRTT := r.Given("path.rtt")
	for i := range p.dirs {
		d := &p.dirs[i]
		if d.hasDelay == hasRTT {
			r.Fail(p.node, "path", "give either rtt or the delay of each direction")
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
			d.Members = slices.Clone(d.Members)
		} else {
			p.ways(r, d)
		}
		// The directions draw their faults apart from each other, and so do members.
		d.Seed = p.seed + uint64(i)
		for k := range d.Members {
			d.Members[k].Seed = d.Seed + 2*uint64(k)
		}
		if len(d.Members) > 0 {
			cfg.HashSeed = p.seed
		}
		cfg.Links[i] = d.Config
		cfg.DataOnly[i] = d.faultsOn == faultsOnData
		cfg.Boxes[i] = d.box
	}
	p.together(r, cfg)
	return cfg
}
