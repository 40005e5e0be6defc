package cli

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// testProfile is a measuring procedure that others agreed on, under a name: what stands for the
// flags that were not typed, and the stages in which a host is measured. The last stage is the
// one whose result counts.
type testProfile struct {
	name   string
	title  string // whose procedure, for whom
	flags  func(profileHost) []profileFlag
	stages []profileStage
}

// profileHost is what a profile may know before it begins.
type profileHost struct {
	cores int // of this machine
	most  int // streams that the chosen protocol takes in one direction
}

// profileFlag is the value of a flag, in the words that one would type.
type profileFlag struct {
	name, value string
	why         string // shown with the plan; "" = it speaks for itself
}

// profileStage is one round of measurements of a host.
type profileStage struct {
	name   string             // stable word: the label of its runs
	why    string             // what it shows; "" = the flags' reasons
	change func(*testOptions) // of the settings for this stage; nil = none
}

// profiles is the list of them. Another one is an entry: its flags, its stages.
var testProfiles = []*testProfile{
	{
		name: "vm", title: "Azure's procedure for virtual machines",
		flags: func(h profileHost) []profileFlag {
			n, why := 2*h.cores, fmt.Sprintf("2 × %d cores of this host", h.cores)
			if n > h.most {
				n, why = h.most, why+fmt.Sprintf(", of which %d can be had", h.most)
			}
			return []profileFlag{
				{"streams", strconv.Itoa(n), why},
				{"time", "300s", ""},
				{"up", "true", ""}, // the procedure has one sender
			}
		},
		stages: []profileStage{
			{checkStage, "does it work, and what does one stream carry?", oneStreamFor(10 * time.Second)},
			{name: recordStage},
		},
	},
}

// Names of stages.
const (
	checkStage  = "check"
	recordStage = "record"
)

// oneStreamFor makes a stage of one stream that is never longer than what it comes before.
func oneStreamFor(most time.Duration) func(*testOptions) {
	return func(o *testOptions) {
		o.plan.Streams = 1
		if o.via != nil && o.via.ports > 1 { // one of them is enough
			v := *o.via
			v.ports = 1
			o.via = &v
		}
		if o.plan.Bytes == 0 {
			o.plan.Duration = min(most, orDefault(o.plan.Duration))
		}
	}
}

func orDefault(d time.Duration) time.Duration {
	if d == 0 {
		return plan.DefaultDuration
	}
	return d
}

// excluding are flags of which one stands for all: a profile sets none of a group of which one
// was typed.
var excluding = [][]string{{"up", "down", "both"}, {"time", "bytes"}}

func profileNames() string {
	var names []string
	for _, p := range testProfiles {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func profileNamed(name string) (*testProfile, error) {
	for _, p := range testProfiles {
		if p.name == name {
			return p, nil
		}
	}
	return nil, &UsageError{Msg: fmt.Sprintf("--profile %q: there is no such profile", name), Hints: []string{"there is: " + profileNames()}}
}

// useProfile puts the values of the profile that was asked for into the flags that were not
// typed.
func (o *testOptions) useProfile(f *pflag.FlagSet) error {
	if o.profileName == "" {
		return nil
	}
	p, err := profileNamed(o.profileName)
	if err != nil {
		return err
	}
	o.profile = p
	o.streamsTyped = typed(f, "streams")
	for _, v := range p.flags(o.profileHost()) {
		flag := f.Lookup(v.name)
		if flag == nil {
			return fmt.Errorf("profile %s: there is no flag --%s", p.name, v.name)
		}
		if typed(f, v.name) {
			continue
		}
		if err := flag.Value.Set(v.value); err != nil { // not f.Set: the user did not type it
			return fmt.Errorf("profile %s: --%s %s: %w", p.name, v.name, v.value, err)
		}
		if v.why != "" {
			o.reasons = append(o.reasons, v.why)
		}
	}
	return nil
}

func (o *testOptions) profileHost() profileHost {
	h := profileHost{cores: runtime.NumCPU(), most: plan.MaxStreamsExt}
	if strings.HasPrefix(o.viaWord, viaWindows) { // a port for each
		h.most = plan.MaxNTTTCPTokens
	}
	return h
}

// typed reports whether the user gave a flag, or one that excludes it.
func typed(f *pflag.FlagSet, name string) bool {
	if f.Changed(name) {
		return true
	}
	for _, group := range excluding {
		if slices.Contains(group, name) && slices.ContainsFunc(group, f.Changed) {
			return true
		}
	}
	return false
}

// testStep is one measurement of `fullbore test`.
type testStep struct {
	plan  plan.Plan
	stage *profileStage // of a profile; nil = there is none
	first bool          // of its stage
	judge bool          // thresholds are about it
	// spare: the number of streams is the profile's, not the user's.
	spare bool
	round int        // of several, from 1; 0 = there are none
	found *plan.Plan // with the rate that -b auto found for all rounds; nil = not yet
}

// label is what the step's run is called; "" without a profile.
func (s *testStep) label() string {
	if s.stage == nil {
		return ""
	}
	return s.stage.name
}

// steps are the measurements of one host in order.
func (o *testOptions) steps(host string) ([]testStep, error) {
	if o.profile == nil {
		plans, err := o.plans(host)
		if err != nil {
			return nil, err
		}
		var out []testStep
		for _, p := range plans {
			out = append(out, testStep{plan: p, judge: true})
		}
		return out, nil
	}
	var out []testStep
	for i := range o.profile.stages {
		stage := &o.profile.stages[i]
		changed := *o
		if stage.change != nil {
			stage.change(&changed)
		}
		plans, err := changed.plans(host)
		if err != nil {
			return nil, err
		}
		for j, p := range plans {
			out = append(out, testStep{
				plan: p, stage: stage, first: j == 0, judge: i == len(o.profile.stages)-1, spare: !o.streamsTyped,
			})
		}
	}
	return out, nil
}

// fit lowers the streams of a profile to what the other end takes, which the run before told.
func (s *testStep) fit(before []*result.Run) *result.Notice {
	if !s.spare || len(before) == 0 || s.plan.Streams <= plan.MaxStreams || s.plan.NTTTCP != nil {
		return nil
	}
	if w := before[len(before)-1].Wire; w == nil || w.Extension {
		return nil
	}
	was := s.plan.Streams
	s.plan.Streams = plan.MaxStreams
	return &result.Notice{
		Code: "streams-lowered", End: result.Client, Level: result.Warn,
		Text: fmt.Sprintf("the other end is an iperf3, which takes %d streams: %d instead of the profile's %d", plan.MaxStreams, plan.MaxStreams, was),
	}
}
