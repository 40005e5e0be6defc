package traffic

import (
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// usage is one reading of this process's consumption.
type usage struct {
	ok        bool
	at        time.Time
	user, sys time.Duration
	peak      int64 // bytes of resident memory at its highest; 0 = unknown
}

// since returns the cost from base to u and the CPU share; nil when the system does
// not tell. bytes is what this end moved in that time.
func (u usage) since(base usage, bytes int64) (*result.ProcessCost, *result.CPU) {
	if !u.ok || !base.ok {
		return nil, nil
	}
	user, sys := u.user-base.user, u.sys-base.sys
	cost := &result.ProcessCost{CPUSeconds: (user + sys).Seconds()}
	if bytes > 0 {
		v := cost.CPUSeconds / (float64(bytes) / 1e9)
		cost.SecPerGB = &v
	}
	if u.peak > 0 {
		p := u.peak
		cost.PeakRSS = &p
	}
	wall := u.at.Sub(base.at).Seconds()
	if wall <= 0 {
		return cost, nil
	}
	return cost, &result.CPU{
		Total:  100 * (user + sys).Seconds() / wall,
		User:   100 * user.Seconds() / wall,
		System: 100 * sys.Seconds() / wall,
	}
}
