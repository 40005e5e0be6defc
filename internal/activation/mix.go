package activation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
)

// Bounds of a frame, bytes with Ethernet's header and check; of a mix, frames; of all services, streams at
// the same time.
const (
	leastFrame = 90
	mostFrame  = 9018
	maxMix     = 64
	maxStreams = 32
)

// letters are Y.1564's words for the frame sizes of an EMIX.
var letters = map[rune]int{'a': 64, 'b': 128, 'c': 256, 'd': 512, 'e': 1024, 'f': 1280, 'g': 1518}

// frameMix reads an EMIX: letters of Y.1564 ("bbbeg") or sizes ("128 128 512 1518"), each as often as it is
// to be sent.
func frameMix(text string) (mix []int, err error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 1 && strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz") == "" {
		for _, l := range words[0] {
			size, ok := letters[l]
			if !ok {
				return nil, fmt.Errorf("%q: there are a to g; other sizes are written as numbers", l)
			}
			mix = append(mix, size)
		}
	} else {
		for _, w := range words {
			size, err := strconv.Atoi(w)
			if err != nil {
				return nil, fmt.Errorf("%q is no size", w)
			}
			mix = append(mix, size)
		}
	}
	for _, size := range mix {
		if size < leastFrame || size > mostFrame {
			return nil, fmt.Errorf("frames of %d: must be %d … %d bytes (the datagrams carry 44 bytes of figures)", size, leastFrame, mostFrame)
		}
	}
	switch {
	case len(mix) == 0:
		return nil, fmt.Errorf("there is no size in it")
	case len(mix) > maxMix:
		return nil, fmt.Errorf("%d frames; at most %d", len(mix), maxMix)
	}
	return mix, nil
}

// mix puts the frame sizes of a service into out.
func (r *reader) mix(path string, s *service, out *method.Service) {
	if s.EMIX == "" {
		return
	}
	if s.Frame != 0 {
		r.fail(path+".emix", "emix %q: frame says that all frames have %d bytes", s.EMIX, s.Frame)
	}
	mix, err := frameMix(s.EMIX)
	if err != nil {
		r.fail(path+".emix", "emix %q: %v", s.EMIX, err)
		return
	}
	slices.Sort(mix)
	sum := 0
	for _, size := range mix {
		sum += size
	}
	out.Mix, out.Frame = mix, sum/len(mix)
}

// bursts puts the burst sizes of a service into out.
func (r *reader) bursts(path string, s *service, out *method.Service) {
	size := func(key, text string) float64 {
		if text == "" {
			return 0
		}
		n, err := units.ParseSize(text)
		switch {
		case err != nil || n <= 0:
			r.fail(path+"."+key, "%s %q: a size such as 30kB", key, text)
		case out.Mix != nil:
			r.fail(path+"."+key, "%s: a burst has frames of one size, and emix names several", key)
		case int(n) < out.Frame:
			r.fail(path+"."+key, "%s %q: less than a frame of %d bytes", key, text, out.Frame)
		default:
			return float64(n)
		}
		return 0
	}
	out.CBS, out.EBS = size("cbs", s.CBS), size("ebs", s.EBS)
	if out.EBS > 0 && out.EIR <= 0 {
		r.fail(path+".ebs", "ebs without eir: there is no excess rate that it could fill up at")
	}
	key := "cbs"
	if out.EBS > 0 {
		key = "ebs"
	}
	if frames := int(out.CBS+out.EBS) / max(out.Frame, 1); frames > plan.MaxBurst {
		r.fail(path+"."+key, "%s: a burst of %d frames of %d bytes; one is at most %d", key, frames, out.Frame, plan.MaxBurst)
	}
}

// streams checks how many tests all services together are.
func (r *reader) streams(services []method.Service) {
	n := 0
	for i := range services {
		n += services[i].Streams()
	}
	if n > maxStreams {
		r.fail("services", "services: with each size of a mix a stream of its own, %d streams at the same time; at most %d", n, maxStreams)
	}
}
