package conclude

import "github.com/fullbore-net/fullbore/result"

// What the rules over one run know of it, for rules over several.

// WorkerLoad is the share of the measured time that the busiest worker of end e ran or
// waited to run; false where it is not known.
func WorkerLoad(run *result.Run, e result.End) (load float64, known bool) { return workerLoad(run, e) }

// Throttled is the share of the measured time in which a CPU quota held end e.
func Throttled(run *result.Run, e result.End) (share float64, known bool) { return throttled(run, e) }

// Stolen is the largest share of a core's time that the hypervisor of end e gave to
// others, mean over the measured time.
func Stolen(run *result.Run, e result.End) (share float64, known bool) {
	return weighted(run, e, func(h *result.HostSample) *float64 { return &h.StealMax })
}

// LinkSpeed is the slower of the two interfaces, bit/s, 0 when neither is known.
func LinkSpeed(run *result.Run) int64 { return linkSpeed(run) }

// Ideal is M-6349's ideal throughput of the slower interface, payload bit/s; false when no
// speed or no MTU is known, or the test never left the machine.
func Ideal(run *result.Run, d result.Direction) (float64, bool) { return idealRate(run, look(run, d)) }

// Loopback reports whether a run never left this machine.
func Loopback(run *result.Run) bool { return loopback(run) }

// SharedCores reports whether both ends may well use the same processors.
func SharedCores(run *result.Run) bool { return sharedCores(run) }

// LossBased reports whether a congestion control's rate is a function of loss.
func LossBased(name string) bool { return isLossBased(name) }
