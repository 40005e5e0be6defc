//go:build unix && !linux

package traffic

// peakRSS: not read here; ru_maxrss would carry the parent's value.
func peakRSS() int64 { return 0 }
