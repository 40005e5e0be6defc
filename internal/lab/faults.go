package lab

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The faults of a path as scenarios and `fullbore lab shell` spell them.

// ParseJitter reads "0-4ms": from 0 to 4 ms more than the path's delay. The first time
// may leave its unit to the second.
func ParseJitter(text string) (j link.Jitter, err error) {
	least, most, ok := strings.Cut(text, "-")
	least, most = strings.TrimSpace(least), strings.TrimSpace(most)
	if ok && least != "" && !strings.ContainsFunc(least, unicode.IsLetter) {
		least += strings.TrimLeft(most, "0123456789. ")
	}
	var errs [2]error
	j.Least, errs[0] = units.ParseDuration(least)
	j.Most, errs[1] = units.ParseDuration(most)
	if !ok || errors.Join(errs[:]...) != nil || j.Least < 0 || j.Most < j.Least || j.Most == 0 || j.Most > link.MaxDelay {
		return link.Jitter{}, fmt.Errorf("%q is no range of times like 0-4ms, up to %v", text, link.MaxDelay)
	}
	return j, nil
}

// ParseReorder reads "1%/3", a share of the packets held back until three others have
// passed, or "1%/5ms", held back by a time.
func ParseReorder(text string) (r link.Reorder, err error) {
	share, by, ok := strings.Cut(text, "/")
	if r.Share, err = parsePercent(share); err != nil {
		return r, err
	}
	by = strings.TrimSpace(by)
	if n, err := strconv.Atoi(by); ok && err == nil {
		if n < 1 || n > link.MaxHeld {
			return r, fmt.Errorf("%q: a packet is held back for 1 to %d others", text, link.MaxHeld)
		}
		r.Packets = n
		return r, nil
	}
	if r.Time, err = units.ParseDuration(by); !ok || err != nil || r.Time <= 0 || r.Time > link.MaxDelay {
		return r, fmt.Errorf("%q is neither like 1%%/3 (packets) nor like 1%%/5ms", text)
	}
	return r, nil
}

// ParseBursts reads "0.1%/30%": the probabilities that the path turns bad and good again.
func ParseBursts(text string) (b link.Bursts, err error) {
	p, r, ok := strings.Cut(text, "/")
	var errs [2]error
	b.GoodToBad, errs[0] = parsePercent(p)
	b.BadToGood, errs[1] = parsePercent(r)
	if !ok || errors.Join(errs[:]...) != nil {
		return b, fmt.Errorf("%q is not like 0.1%%/30%%", text)
	}
	return b, nil
}

// ParseOutage reads "2s/300ms": from when on, and for how long.
func ParseOutage(text string) (o link.Outage, err error) {
	at, long, ok := strings.Cut(text, "/")
	var errs [2]error
	o.At, errs[0] = units.ParseDuration(strings.TrimSpace(at))
	o.For, errs[1] = units.ParseDuration(strings.TrimSpace(long))
	if !ok || errors.Join(errs[:]...) != nil || o.At < 0 || o.For <= 0 {
		return o, fmt.Errorf("%q is not like 2s/300ms", text)
	}
	return o, nil
}

// parsePercent reads "0.5%" as 0.005.
func parsePercent(s string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%q is not a percentage from 0%% to 100%%", s)
	}
	return v / 100, nil
}

// The words of faults_on.
const (
	faultsOnAll  = "everything"
	faultsOnData = "datagrams"
)

// faultFields are the keys of a direction that hurt packets.
func (d *directionText) faultFields(r *reader) map[string]handler {
	return map[string]handler{
		"loss":       r.percent(&d.Loss),
		"jitter":     parsed(r, &d.jitter, ParseJitter),
		"keep_order": r.Truth(&d.keepOrder),
		"reorder":    parsed(r, &d.Reorder, ParseReorder),
		"duplicate":  r.percent(&d.Duplicate),
		"bursts": func(n ast.Node, at string) {
			r.Mapping(n, at, map[string]handler{"p": r.percent(&d.Bursts.GoodToBad), "r": r.percent(&d.Bursts.BadToGood)})
			r.require(n, at, "p", "r")
		},
		"outage": func(n ast.Node, at string) {
			from := ""
			r.Mapping(n, at, map[string]handler{
				"at":   r.duration(&d.Outage.At, 0, time.Hour),
				"for":  r.duration(&d.Outage.For, time.Nanosecond, time.Hour),
				"from": r.oneOf(&from, "first packet", "start"),
			})
			r.require(n, at, "at", "for")
			d.Outage.FromStart = from == "start"
		},
		"hole": r.integer(&d.Hole, 1, link.MaxPacket),
	}
}

// faults finds what no single key of a direction can show, and settles what depends on
// several.
func (d *directionText) faults(r *reader) {
	d.Jitter = d.jitter
	d.Jitter.KeepOrder = d.keepOrder
	if d.keepOrder && d.jitter == (link.Jitter{}) {
		r.Fail(d.node, d.path+".keep_order", "needs jitter")
	}
	if d.faultsOn == faultsOnData && !d.Config.Faults.Any() && d.Loss == 0 && !d.hasMembers {
		r.Fail(d.node, d.path+".faults_on", "there are no faults")
	}
}

// parsed hands a scalar's text to a parser.
func parsed[T any](r *reader, to *T, parse func(string) (T, error)) handler {
	return r.Value(func(s string) (err error) {
		*to, err = parse(s)
		return err
	})
}
