package units

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// ParseRate reads a rate in our own spelling and returns bit/s: 100M, 1.5Gbit/s,
// "941 Mbit/s", 10Gbps, 12.5MB/s (bytes, so times eight), 1Gibit/s (2^30). A bare
// letter and a bare number mean bits per second. Letters of the prefix may be lower
// or upper case; in b and B they tell bits from bytes.
func ParseRate(s string) (BitRate, error) {
	n, rest, why := scan(s)
	multiplier := int64(1)
	if why == "" {
		base, p, unit := splitUnit(rest, 1000)
		eight := int64(1)
		switch {
		case isBits(unit):
		case isBytes(unit):
			why = fmt.Sprintf("%q is an amount, not a rate: write %[1]s/s for bytes per second", strings.TrimSpace(rest))
		default:
			what, ok := cutPerSecond(unit)
			switch {
			case ok && isBits(what):
			case ok && isBytes(what):
				eight = 8
			default:
				why = fmt.Sprintf("unknown unit %q", strings.TrimSpace(rest))
			}
		}
		multiplier = eight * power(base, p)
	}
	var v int64
	if why == "" {
		v, why = amount(n, multiplier)
	}
	if why != "" {
		return 0, &SyntaxError{"rate", s, why}
	}
	return BitRate(v), nil
}

// ParseSize reads a size in our own spelling and returns bytes: 128K and 128KiB are
// 131072, 128kB is 128000, 1500 and 1500B are 1500.
func ParseSize(s string) (ByteSize, error) {
	n, rest, why := scan(s)
	multiplier := int64(1)
	if why == "" {
		base, p, unit := splitUnit(rest, 1000)
		switch {
		case unit == "" && p > 0:
			base = 1024
		case unit == "", isBytes(unit):
		case isBits(unit):
			why = fmt.Sprintf("%q is in bits; a size is in bytes", strings.TrimSpace(rest))
		default:
			why = fmt.Sprintf("unknown unit %q", strings.TrimSpace(rest))
		}
		multiplier = power(base, p)
	}
	var v int64
	if why == "" {
		v, why = amount(n, multiplier)
	}
	if why != "" {
		return 0, &SyntaxError{"size", s, why}
	}
	return ByteSize(v), nil
}

// splitUnit takes what follows a number apart: blanks, a prefix letter with or
// without i, the unit proper.
func splitUnit(rest string, decimal int64) (base int64, exp int, unit string) {
	unit = strings.Trim(rest, " ")
	base = decimal
	if unit == "" {
		return base, 0, ""
	}
	exp = max(prefix(unit[0]), 0)
	if exp > 0 {
		unit = unit[1:]
		if after, ok := strings.CutPrefix(unit, "i"); ok {
			base, unit = 1024, after
		}
	}
	return base, exp, unit
}

// cutPerSecond removes "/s", "/sec", "/second" or "ps" from the end of a unit.
func cutPerSecond(unit string) (string, bool) {
	if i := strings.IndexByte(unit, '/'); i >= 0 {
		return unit[:i], isPerSecond(strings.ToLower(unit[i:]))
	}
	what, ok := strings.CutSuffix(unit, "ps")
	return what, ok && what != ""
}

func isBits(unit string) bool {
	switch unit {
	case "", "b", "bit", "bits":
		return true
	}
	return false
}

func isBytes(unit string) bool {
	switch unit {
	case "B", "byte", "bytes", "Byte", "Bytes":
		return true
	}
	return false
}

// ParseDuration reads a length of time: 28ms, 1.5s, 350us, 2min, 1h, 1h30m, or a bare
// number of seconds. It is never negative.
func ParseDuration(s string) (time.Duration, error) {
	total := new(big.Rat)
	rest := strings.Trim(s, " ")
	for first := true; first || rest != ""; first = false {
		n, after, why := scan(rest)
		if why != "" {
			return 0, &SyntaxError{"duration", s, why}
		}
		after = strings.TrimLeft(after, " ")
		end := strings.IndexAny(after, "0123456789.+- ")
		if end < 0 {
			end = len(after)
		}
		unit, ok := timeUnits[after[:end]]
		if after == "" {
			unit, ok = time.Second, first
		}
		if !ok {
			why = fmt.Sprintf("unknown unit %q", after[:end])
			if end == 0 {
				why = "a unit is missing"
			}
			return 0, &SyntaxError{"duration", s, why}
		}
		if n.Sign() < 0 {
			return 0, &SyntaxError{"duration", s, "must not be negative"}
		}
		total.Add(total, n.Mul(n, new(big.Rat).SetInt64(int64(unit))))
		rest = strings.TrimLeft(after[end:], " ")
	}
	d, why := duration(total, time.Nanosecond)
	if why != "" {
		return 0, &SyntaxError{"duration", s, why}
	}
	return d, nil
}

var timeUnits = map[string]time.Duration{
	"ns": time.Nanosecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, // U+00B5, U+03BC
	"ms": time.Millisecond,
	"s":  time.Second, "sec": time.Second,
	"m": time.Minute, "min": time.Minute,
	"h": time.Hour,
	"d": 24 * time.Hour,
}

// duration rounds n×unit to whole nanoseconds.
func duration(n *big.Rat, unit time.Duration) (d time.Duration, why string) {
	n = new(big.Rat).Mul(n, new(big.Rat).SetInt64(int64(unit)))
	twice := new(big.Int).Mul(n.Num(), big.NewInt(2))
	half := n.Denom()
	if n.Sign() < 0 {
		half = new(big.Int).Neg(half)
	}
	whole := new(big.Int).Quo(twice.Add(twice, half), new(big.Int).Mul(n.Denom(), big.NewInt(2)))
	if !whole.IsInt64() {
		return 0, "too large"
	}
	if n.Sign() > 0 && whole.Sign() == 0 {
		return 0, "too small"
	}
	return time.Duration(whole.Int64()), ""
}

// String prints r with three significant digits: "941 Mbit/s", "1.05 Mbit/s".
func (r BitRate) String() string {
	n, p := scaled(float64(r), 1000, 4)
	return n + " " + [...]string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}[p]
}

// Exact prints r without loss and as short as it goes, as ParseRate and iperf3's -b
// read it: "1G", "1500K", "1048576".
func (r BitRate) Exact() string { return exact(int64(r), 1000) }

// String prints s with three significant digits in decimal units: "1.25 MB".
func (s ByteSize) String() string {
	n, p := scaled(float64(s), 1000, 4)
	return n + " " + [...]string{"B", "kB", "MB", "GB", "TB"}[p]
}

// IEC prints s with three significant digits in binary units: "1.19 MiB".
func (s ByteSize) IEC() string {
	n, p := scaled(float64(s), 1024, 4)
	return n + " " + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[p]
}

// Exact prints s without loss and as short as it goes, as ParseSize and iperf3's -l
// read it: "128K", "1250000".
func (s ByteSize) Exact() string { return exact(int64(s), 1024) }

func exact(v, base int64) string {
	p := 0
	for v != 0 && v%base == 0 && p < 4 {
		v /= base
		p++
	}
	return strings.TrimSpace(fmt.Sprintf("%d%c", v, " KMGT"[p]))
}

// FormatDuration prints d with three significant digits, and no needless zeros:
// "28 ms", "1.5 s", "350 µs". From a second on it is seconds, whole ones from 100 on:
// "300 s". (time.Duration's own String is the exact form; ParseDuration reads both.)
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0 s"
	}
	sign := ""
	if d < 0 {
		sign = "-"
	}
	n, p := scaled(math.Abs(float64(d)), 1000, 3)
	if strings.Contains(n, ".") {
		n = strings.TrimRight(strings.TrimRight(n, "0"), ".")
	}
	return sign + n + " " + [...]string{"ns", "µs", "ms", "s"}[p]
}
