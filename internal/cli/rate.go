package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/units"
)

// rateSpec is a rate as -b spells it: an amount on a layer, a share of the link's speed, or
// "auto". The zero value was not given.
type rateSpec struct {
	text    string // as typed
	auto    bool
	bps     int64   // bit/s, when it is an amount
	share   float64 // of the link, when it is a share
	layer   units.Layer
	layered bool // the layer was named
}

func (r rateSpec) given() bool { return r.text != "" }

// parseRateSpec reads 1G, 1G@l1, 95%, 95%@l7, auto. An amount without a layer is payload
// (l7); a share without one is of what the link's speed counts, l1.
func parseRateSpec(s string) (rateSpec, error) {
	r := rateSpec{text: s}
	word := strings.TrimSpace(s)
	if word == "auto" {
		r.auto = true
		return r, nil
	}
	amount, layer, ok := strings.Cut(word, "@")
	if ok {
		l, err := units.ParseLayer(strings.TrimSpace(layer))
		if err != nil {
			return rateSpec{}, err
		}
		r.layer, r.layered = l, true
	}
	if p, isShare := strings.CutSuffix(strings.TrimSpace(amount), "%"); isShare {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(v > 0 && v <= 1000) {
			return rateSpec{}, fmt.Errorf("rate %q: a share of the link is a number of per cent above 0, e.g. 95%%", s)
		}
		r.share = v / 100
		if !ok {
			r.layer = units.L1
		}
		return r, nil
	}
	v, err := units.ParseRate(amount)
	if err != nil {
		return rateSpec{}, err
	}
	r.bps = int64(v)
	return r, nil
}

// rateSpecFlag is the option's type.
type rateSpecFlag struct{ r *rateSpec }

func (f rateSpecFlag) Set(s string) error {
	r, err := parseRateSpec(s)
	if err == nil {
		*f.r = r
	}
	return err
}
func (f rateSpecFlag) Type() string { return "rate" }
func (f rateSpecFlag) String() string {
	if f.r == nil {
		return ""
	}
	return f.r.text
}
