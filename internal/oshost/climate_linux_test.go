package oshost

import (
	"os"
	"path/filepath"
	"testing"
)

func TestClimate(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":             "2100000\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":             "3400000\n",
		"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
		"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4\n",
		"sys/devices/system/cpu/cpufreq/nothing":                           "1\n",
		"sys/class/thermal/thermal_zone0/temp":                             "41000\n",
		"sys/class/thermal/thermal_zone1/temp":                             "63500\n",
		"sys/class/thermal/thermal_zone2/temp":                             "-274000\n",
		"sys/class/thermal/cooling_device0/temp":                           "99000\n",
		"proc/self/statm":                                                  "9000 1234 100 1 0 1 0\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := ReadClimate(root)
	if c.MHz == nil || *c.MHz != 3400 || c.Celsius == nil || *c.Celsius != 63.5 || c.Throttles == nil || *c.Throttles != 7 {
		t.Errorf("%+v", c)
	}
	if got, want := ownMemory(tree{root}), int64(1234*os.Getpagesize()); got != want {
		t.Errorf("memory %d, want %d", got, want)
	}
	if c := ReadClimate(t.TempDir()); c != (Climate{}) {
		t.Errorf("of nothing: %+v", c)
	}
	if ownMemory(tree{t.TempDir()}) <= 0 {
		t.Error("the runtime has no memory")
	}
}
