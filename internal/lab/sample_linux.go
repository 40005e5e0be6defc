package lab

import (
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
)

// sampleEvery is how close a claim's window is met: a few such counters are read then.
const sampleEvery = 20 * time.Millisecond

// sampleCounters reads the counters that claims with a window are about until stop is called,
// which returns them; the second call does nothing.
func (s *Scenario) sampleCounters(n *Network) (stop func() ([][]Sample, error)) {
	out := make([][]Sample, len(s.Expect.SNMP))
	hosts := map[string]bool{}
	for _, e := range s.Expect.SNMP {
		if e.Window.given() {
			hosts[e.Host] = true
		}
	}
	if len(hosts) == 0 {
		return func() ([][]Sample, error) { return out, nil }
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	var failed error
	go func() { // ends with quit, or when a host has no counters
		defer close(gone)
		t := time.NewTicker(sampleEvery)
		defer t.Stop()
		for {
			for host := range hosts {
				at := time.Duration(osnet.Monotonic())
				all, err := n.host(host).Counters()
				if err != nil {
					failed = err
					return
				}
				for i, e := range s.Expect.SNMP {
					if e.Window.given() && e.Host == host {
						out[i] = append(out[i], Sample{at, all[e.Counter]})
					}
				}
			}
			select {
			case <-t.C:
			case <-quit:
				return
			}
		}
	}()
	var once sync.Once
	return func() ([][]Sample, error) {
		once.Do(func() { close(quit) })
		<-gone
		return out, failed
	}
}
