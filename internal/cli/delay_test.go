package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func TestDelayPlans(t *testing.T) {
	base := delayOptions{profile: "voice", connects: 20, plan: plan.Plan{Port: 5201}}
	for name, c := range map[string]struct {
		change func(*delayOptions)
		want   plan.Plan
	}{
		"voice": {func(*delayOptions) {}, plan.Plan{
			Transport: plan.UDP, Streams: 1, BlockSize: 64, Bitrate: 25600, RateSet: true,
			Probe: &plan.Probe{Spacing: 20 * time.Millisecond, Size: 64, Profile: "voice", Idle: true},
		}},
		"1ms": {func(o *delayOptions) { o.profile, o.plain, o.ipv6 = "1ms", true, true }, plan.Plan{
			Transport: plan.UDP, Streams: 1, BlockSize: 64, Bitrate: 512000, RateSet: true, Extension: "off", Family: 6,
			Probe: &plan.Probe{Spacing: time.Millisecond, Size: 64, Profile: "1ms", Idle: true},
		}},
		"own": {func(o *delayOptions) { o.spacing, o.size, o.ipv4 = 5*time.Millisecond, 1200, true }, plan.Plan{
			Transport: plan.UDP, Streams: 1, BlockSize: 1200, Bitrate: 1920000, RateSet: true, Family: 4,
			Probe: &plan.Probe{Spacing: 5 * time.Millisecond, Size: 1200, Profile: "5ms", Idle: true},
		}},
		"tcp": {func(o *delayOptions) { o.tcp, o.size = true, 1 }, plan.Plan{
			Transport: plan.TCP, Streams: 19, BlockSize: 128, Bitrate: 1024, RateSet: true, NoDelay: true,
			Probe: &plan.Probe{Spacing: 20 * time.Millisecond, Size: 1, Profile: "back-to-back", Idle: true, TCP: true},
		}},
	} {
		o := base
		c.change(&o)
		got, err := o.thePlan("h")
		c.want.Host, c.want.Port, c.want.Direction = "h", 5201, plan.Up
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestDelaySilence(t *testing.T) {
	for name, c := range map[string]struct {
		probes  []result.Probes
		answers bool
		code    int
	}{
		"answered":  {[]result.Probes{{Kind: "udp-echo", Sent: 500, Answered: 1}}, true, exitOK},
		"silent":    {[]result.Probes{{Kind: "udp-echo", Sent: 500}}, true, exitInconclusive},
		"connected": {[]result.Probes{{Kind: "tcp-connect", Answered: 2}, {Kind: "tcp-rr"}}, false, exitOK},
	} {
		run := &result.Run{Probes: c.probes}
		if got := exitCode(silence(run)); got != c.code || answersProbes(run) != c.answers {
			t.Errorf("%s: exit code %d, answers %v", name, got, answersProbes(run))
		}
	}
}
