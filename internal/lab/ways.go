package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/units"
)

// What a path has besides a rate, a delay, a queue and faults, as scenarios spell it.

// queueText is a queue as written, which is computed when the rate is known.
type queueText struct {
	text string
	at   ast.Node
	path string
}

func (q *queueText) handler(r *reader) handler {
	return func(n ast.Node, path string) {
		q.at, q.path = n, path
		r.Text(&q.text)(n, path)
	}
}

// read reads "100 packets", "700kB" or, with a rate, "1 bdp". mtu is the largest packet.
func (q *queueText) read(r *reader, rate int64, rtt time.Duration, mtu int) (size int64, packets int) {
	fail := func(format string, args ...any) { r.Fail(q.at, q.path, format, args...) }
	if count, ok := strings.CutSuffix(q.text, "packets"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || n < 1 {
			fail("%q is not a number of packets from 1", q.text)
		}
		return 0, n
	}
	if factor, ok := strings.CutSuffix(q.text, "bdp"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
		if err != nil || !(f > 0 && f <= 1000) {
			fail("%q is not a number of bandwidth-delay products, above 0 and at most 1000", q.text)
			return 0, 0
		}
		size = int64(f * float64(rate) / 8 * rtt.Seconds())
	} else {
		v, err := units.ParseSize(q.text)
		if err != nil {
			fail("%w", err)
			return 0, 0
		}
		size = int64(v)
	}
	if size < int64(mtu) {
		fail("%q is %d bytes, less than one packet of %d", q.text, size, mtu)
	}
	return size, 0
}

// classText is one of a direction's classes.
type classText struct {
	link.Class
	queue queueText
}

// wayFields are the keys of a direction, or of a member, for policers, shapers, classes
// and traffic of others.
func (d *directionText) wayFields(r *reader) map[string]handler {
	per := func(to *bool) handler {
		return r.Value(func(s string) error {
			if s != "flow" && s != "all" {
				return fmt.Errorf("%q is neither flow nor all", s)
			}
			*to = s == "flow"
			return nil
		})
	}
	bucket := func(to *int64) handler {
		return r.Value(func(s string) error {
			v, err := units.ParseSize(s)
			if err == nil && (v <= 0 || int64(v) > link.MaxBucket) {
				err = fmt.Errorf("bucket %s is outside 1..%d bytes", s, link.MaxBucket)
			}
			*to = int64(v)
			return err
		})
	}
	return map[string]handler{
		"policer": func(n ast.Node, at string) {
			d.Policer, d.policerAt = link.Policer{}, n
			r.Mapping(n, at, map[string]handler{
				"rate": r.rate(&d.Policer.BitsPerSecond), "bucket": bucket(&d.Policer.BucketBytes), "per": per(&d.Policer.PerFlow),
			})
			r.require(n, at, "rate", "bucket")
		},
		"shaper": func(n ast.Node, at string) {
			d.Shaper, d.shaperAt, d.shaperQueue = link.Shaper{}, n, queueText{}
			r.Mapping(n, at, map[string]handler{
				"rate": r.rate(&d.Shaper.BitsPerSecond), "bucket": bucket(&d.Shaper.BucketBytes),
				"queue": d.shaperQueue.handler(r), "per": per(&d.Shaper.PerFlow),
			})
			r.require(n, at, "rate", "bucket", "queue")
		},
		"classes": func(n ast.Node, at string) {
			d.classesAt, d.classes = n, nil
			r.Sequence(n, at, func(n ast.Node, at string) { d.readClass(r, n, at) })
		},
		"cross": func(n ast.Node, at string) {
			d.Cross = nil
			r.Sequence(n, at, func(n ast.Node, at string) { d.readCross(r, n, at) })
		},
	}
}

func (d *directionText) readClass(r *reader, n ast.Node, at string) {
	var c classText
	r.Mapping(n, at, map[string]handler{
		"name": r.Text(&c.Name),
		"dscp": func(n ast.Node, at string) {
			r.Sequence(n, at, r.Value(func(s string) error {
				v, err := ParseDSCP(s)
				c.DSCP = append(c.DSCP, v)
				return err
			}))
		},
		"queue": c.queue.handler(r),
	})
	r.require(n, at, "name", "queue")
	d.classes = append(d.classes, c)
}

func (d *directionText) readCross(r *reader, n ast.Node, at string) {
	x := link.Cross{Size: 1200}
	r.Mapping(n, at, map[string]handler{
		"rate":  r.rate(&x.BitsPerSecond),
		"size":  r.integer(&x.Size, 1, link.MaxPacket),
		"dscp":  parsed(r, &x.DSCP, ParseDSCP),
		"from":  r.duration(&x.From, 0, time.Hour),
		"until": r.duration(&x.Until, time.Nanosecond, time.Hour),
		"on":    r.duration(&x.On, time.Nanosecond, time.Hour),
		"off":   r.duration(&x.Off, time.Nanosecond, time.Hour),
	})
	r.require(n, at, "rate")
	d.Cross = append(d.Cross, x)
}

// boxFields are the keys of a direction for what happens to the content of packets.
func (d *directionText) boxFields(r *reader) map[string]handler {
	return map[string]handler{
		"syn": func(n ast.Node, at string) {
			r.Mapping(n, at, map[string]handler{
				"strip": func(n ast.Node, at string) {
					r.Sequence(n, at, r.Value(d.strip))
				},
				"mss": r.integer(&d.box.MSS, 48, math.MaxUint16),
			})
		},
		"hop": func(n ast.Node, at string) {
			r.Mapping(n, at, map[string]handler{
				"mtu":    r.integer(&d.box.MTU, 68, link.MaxPacket),
				"silent": r.Truth(&d.box.Silent),
			})
			r.require(n, at, "mtu")
		},
		"members": func(n ast.Node, at string) {
			d.hasMembers = true
			r.Sequence(n, at, func(n ast.Node, at string) { d.members = append(d.members, memberText{n, at}) })
		},
	}
}

// memberText is a member as written: it is read when all of its direction is known, from
// which it has what it does not say itself.
type memberText struct {
	node ast.Node
	path string
}

func (d *directionText) strip(option string) error {
	switch option {
	case "window scale":
		d.box.WindowScale = true
	case "sack":
		d.box.SACK = true
	case "timestamps":
		d.box.Timestamps = true
	default:
		return fmt.Errorf("%q is none of: window scale, sack, timestamps", option)
	}
	return nil
}

// ways settles what depends on several keys of a direction, and reads its members.
func (p *pathText) ways(r *reader, d *directionText) {
	p.settle(r, d)
	if !d.hasMembers {
		return
	}
	if len(d.members) == 0 || len(d.members) > link.MaxMembers {
		r.Fail(d.node, d.path+".members", "%d of them are not from 1 to %d", len(d.members), link.MaxMembers)
	}
	var members []link.Config
	for _, text := range d.members {
		m := *d
		m.path, m.node, m.hasMembers, m.faultsOn = text.path, text.node, false, ""
		r.Mapping(text.node, text.path, m.memberFields(r))
		p.settle(r, &m)
		members = append(members, m.Config)
	}
	d.Config = link.Config{Members: members}
}

// settle computes queues and finds what no single key of a direction or a member shows.
func (p *pathText) settle(r *reader, d *directionText) {
	rtt := p.dirs[0].Delay + p.dirs[1].Delay
	if len(d.classes) > 0 {
		p.settleClasses(r, d, rtt)
	} else {
		p.setQueue(r, d, rtt)
	}
	if d.shaperQueue.text != "" {
		d.Shaper.QueueBytes, d.Shaper.QueuePackets = d.shaperQueue.read(r, d.Shaper.BitsPerSecond, rtt, p.mtu)
	}
	// A bucket that holds no packet lets none through.
	for _, b := range []struct {
		name        string
		at          ast.Node
		rate, bytes int64
	}{{"policer", d.policerAt, d.Policer.BitsPerSecond, d.Policer.BucketBytes}, {"shaper", d.shaperAt, d.Shaper.BitsPerSecond, d.Shaper.BucketBytes}} {
		if b.rate > 0 && b.bytes > 0 && b.bytes < int64(p.mtu) {
			r.Fail(b.at, d.path+"."+b.name+".bucket", "of %d bytes is less than one packet of %d", b.bytes, p.mtu)
		}
	}
	d.faults(r)
	d.check(r)
}

// check reports what the schedule itself refuses.
func (d *directionText) check(r *reader) {
	if len(d.Cross) == 0 && len(d.classes) == 0 {
		return // everything else was checked key by key
	}
	if err := d.Config.Validate(); err != nil {
		r.Fail(d.node, d.path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (p *pathText) settleClasses(r *reader, d *directionText, rtt time.Duration) {
	if d.queue.text != "" {
		r.Fail(d.queue.at, d.queue.path, "each class has its own")
	}
	d.Classes, d.QueueBytes, d.QueuePackets = nil, 0, 0
	for _, c := range d.classes {
		if c.queue.text != "" && d.BitsPerSecond > 0 {
			c.QueueBytes, c.QueuePackets = c.queue.read(r, d.BitsPerSecond, rtt, p.mtu)
		}
		d.Classes = append(d.Classes, c.Class)
	}
}

// setQueue computes the queue before a direction's serialiser.
func (p *pathText) setQueue(r *reader, d *directionText, rtt time.Duration) {
	switch {
	case d.queue.text == "" && d.BitsPerSecond == 0:
		return // infinitely fast: no queue ever forms
	case d.queue.text == "":
		r.Fail(d.node, d.path+".queue", "is missing: a link with a rate has one")
	case d.BitsPerSecond == 0:
		r.Fail(d.queue.at, d.queue.path, "needs a rate: an infinitely fast link has no queue")
	default:
		d.QueueBytes, d.QueuePackets = d.queue.read(r, d.BitsPerSecond, rtt, p.mtu)
	}
}

// together finds what the two directions do not allow each other.
func (p *pathText) together(r *reader, cfg forward.Config) {
	if r.Given("path.hash") && len(cfg.Links[0].Members)+len(cfg.Links[1].Members) == 0 && !r.Failed() {
		r.Fail(p.node, "path.hash", "there are no members to choose from")
	}
	whole := link.PathConfig{Directions: cfg.Links, HalfDuplex: cfg.HalfDuplex}
	if !cfg.HalfDuplex || r.Failed() {
		return
	}
	if err := whole.Validate(); err != nil {
		r.Fail(p.node, "path.duplex", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// ParseDSCP reads a code point: 0 to 63, or its name (RFC 2474, RFC 2597, RFC 3246, RFC
// 5865): cs0 … cs7, af11 … af43, ef, va.
func ParseDSCP(text string) (uint8, error) {
	if n, err := strconv.ParseUint(text, 10, 8); err == nil && n <= 63 {
		return uint8(n), nil
	}
	digit := func(i int, least, most byte) (uint8, bool) {
		return text[i] - '0', text[i] >= least && text[i] <= most
	}
	switch {
	case text == "ef":
		return 46, nil
	case text == "va":
		return 44, nil
	case len(text) == 3 && text[:2] == "cs":
		if c, ok := digit(2, '0', '7'); ok {
			return 8 * c, nil
		}
	case len(text) == 4 && text[:2] == "af":
		c, ok := digit(2, '1', '4')
		if p, alsoOK := digit(3, '1', '3'); ok && alsoOK {
			return 8*c + 2*p, nil
		}
	}
	return 0, fmt.Errorf("%q is no code point: 0 to 63, cs0 to cs7, af11 to af43, ef, va", text)
}

// fields are the keys of a path about its directions together.
func (p *pathText) fields(r *reader) map[string]handler {
	return map[string]handler{
		"duplex": r.Value(func(s string) error {
			if s != "half" && s != "full" {
				return fmt.Errorf("%q is neither half nor full", s)
			}
			p.half = s == "half"
			return nil
		}),
		"hash": parsed(r, &p.hash, link.ParseHash),
	}
}
