package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// preset is a kind of path with what practitioners set there: streams, window and time, for one
// measurement and for a sweep.
type preset struct {
	name, title             string
	streams                 string // of one measurement
	window                  string // "" = the system's own
	time                    string
	overStreams, overWindow string // what a sweep tries
	sweepTime               string // of each of its steps
}

// presets are those of the recipes: streams 1 G 2–8, 10 G 4–32, WAN 8–16, Internet 4–10, wireless
// 2–6; windows LAN default or 1 M, 10 G 2–4 M, WAN 4–8 M, Internet 1–2 M; at least 30 s, better 60.
var presets = []preset{
	{"lan-1g", "a local network of 1 Gbit/s", "4", "", "30s", "1,2,4,8", "64K,256K,1M,auto", "10s"},
	{"dc-10g", "a data centre of 10 Gbit/s", "8", "4M", "30s", "1,4,8,16,32", "1M,2M,4M,8M,auto", "10s"},
	{"wan", "a long line between sites", "8", "8M", "60s", "1,4,8,12,16", "1M,2M,4M,8M,16M,auto", "20s"},
	{"internet", "the Internet", "4", "2M", "60s", "1,2,4,6,10", "256K,512K,1M,2M,4M,auto", "20s"},
	{"wifi", "a wireless network, one station at a time", "4", "", "60s", "1,2,4,6", "256K,512K,1M,2M,auto", "20s"},
}

func presetNames() string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func presetNamed(name string) (*preset, error) {
	for i := range presets {
		if presets[i].name == name {
			return &presets[i], nil
		}
	}
	return nil, &UsageError{Msg: fmt.Sprintf("--preset %q: there is no such preset", name), Hints: []string{"there are: " + presetNames()}}
}

// usePreset puts values into the flags that were not typed; "" leaves one as it is.
func usePreset(f *pflag.FlagSet, name string, values map[string]string) error {
	for flag, v := range values {
		if v == "" || typed(f, flag) {
			continue
		}
		if err := f.Lookup(flag).Value.Set(v); err != nil { // not f.Set: the user did not type it
			return fmt.Errorf("preset %s: --%s %s: %w", name, flag, v, err)
		}
	}
	return nil
}

// usePreset puts the values of --preset into the flags that were not typed.
func (o *testOptions) usePreset(f *pflag.FlagSet) error {
	if o.preset == "" {
		return nil
	}
	p, err := presetNamed(o.preset)
	if err != nil {
		return err
	}
	if o.profileName != "" || o.udp.udp {
		return usagef("--preset %s: it is about TCP, and not for a profile, which has settings of its own", o.preset)
	}
	return usePreset(f, p.name, map[string]string{"streams": p.streams, "window": p.window, "time": p.time})
}
