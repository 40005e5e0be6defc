package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// The step worth typing after a command that searched or judged (design §2: the answer, the numbers, the
// next step).

// next prints a step as the outputs of a run do.
func (v *stageView) next(s *result.Step) {
	if s == nil {
		return
	}
	fmt.Fprintln(v.e.Out)
	fmt.Fprintln(v.e.Out, "next: "+v.paint("1", screen.Clean(s.Command)))
	v.line("      # ", s.Why)
}

// step makes one of a command's words, with how HOST is reached where that is not the usual way.
func (o *methodOptions) step(host, why string, words ...string) *result.Step {
	return stepTo(host, o.plan.Port, &o.peerFlags, why, words...)
}

func stepTo(host string, port int, peer *peerFlags, why string, words ...string) *result.Step {
	for i, w := range words {
		if w != "HOST" {
			continue
		}
		to := []string{host}
		if host != "self" {
			if port != 0 && port != plan.DefaultPort {
				to = append(to, "-p", strconv.Itoa(port))
			}
			switch {
			case peer.ipv4:
				to = append(to, "-4")
			case peer.ipv6:
				to = append(to, "-6")
			}
		}
		words = append(append(append([]string{}, words[:i]...), to...), words[i+1:]...)
		break
	}
	return &result.Step{Command: "fullbore " + strings.Join(words, " "), Why: why}
}

// fitness asks whether an end is fit, since it was the limit.
func fitness(end result.End, host string) *result.Step {
	where := "here"
	if end == result.Server && host != "self" {
		where = "at " + host
	}
	return &result.Step{Command: "fullbore doctor", Why: where + ": that end, not the path, was the limit: is it fit to measure?"}
}

// excuses are the flags of a finding with which a missed threshold is not the path's miss.
var excuses = []struct{ flag, why string }{
	{"host_limited", "an end, not the path, was the limit"},
	{"sender_limited", "the sender did not reach the rate"},
	{"irregular", "the search ended before its bounds were close"},
	{"at_max_load", "more was not to be tried"},
}

// excuse makes methodJob.excused of findings; names are the values that the words of --expect mean. It gives none
// where a finding misses the threshold without one.
func excuse(names map[string]string) func(*result.Report, threshold) string {
	return func(rep *result.Report, t threshold) (why string) {
		name := names[t.figure]
		for i := range rep.Findings {
			f := &rep.Findings[i]
			v := figureIn(f, name)
			if v == nil || t.met(*v) {
				continue
			}
			own := ""
			for _, x := range excuses {
				if slices.Contains(f.Flags, x.flag) {
					own = x.why
					break
				}
			}
			if upper := figureIn(f, "upper"); own == "" && name == "lower" && upper != nil && t.met(*upper) {
				own = "it lies between a rate that went through and one that did not"
			}
			if own == "" {
				return ""
			}
			why = own
		}
		return why
	}
}

// figureIn is a figure of a finding; nil = it has none of that name.
func figureIn(f *result.Finding, name string) *float64 {
	for i := range f.Values {
		if f.Values[i].Name == name {
			return &f.Values[i].Value
		}
	}
	return nil
}

// longText is a time of minutes for people.
func longText(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%.3g min", d.Minutes())
	}
	return units.FormatDuration(d)
}

// secondsWord is a time as a command line takes it.
func secondsWord(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
