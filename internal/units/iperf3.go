package units

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// ParseIperf3Rate reads the value of -b, --fq-rate and --server-bitrate-limit: bit/s
// with K, M, G, T of 1000. Stricter than iperf3 3.21: what follows the letter must be
// a spelling of the unit (10M, 10Mbps, 10Mbit/s, 10MB, 10M/s; all mean 10^7 bit/s
// there and here), not junk; no sign, no infinity, nothing that would round to
// "unlimited".
func ParseIperf3Rate(s string) (BitRate, error) {
	v, err := parseIperf3(s, "rate", 1000)
	return BitRate(v), err
}

// ParseIperf3Size reads the value of -l, -n, -k, -w and the other sizes and counts:
// K, M, G, T of 1024, strict like ParseIperf3Rate.
func ParseIperf3Size(s string) (ByteSize, error) {
	v, err := parseIperf3(s, "size", 1024)
	return ByteSize(v), err
}

func parseIperf3(s, kind string, base int64) (int64, error) {
	n, rest, why := scan(s)
	multiplier := int64(1)
	if why == "" && rest != "" {
		p := prefix(rest[0])
		if p <= 0 || !isUnitTail(rest[1:]) {
			why = fmt.Sprintf("unknown unit %q", rest)
		} else {
			multiplier = power(base, p)
		}
	}
	var v int64
	if why == "" {
		v, why = amount(n, multiplier)
	}
	if why != "" {
		return 0, &SyntaxError{kind, s, why}
	}
	return v, nil
}

// isUnitTail reports whether s may follow K, M, G or T: iperf3 ignores whatever
// stands there, we only what says "bits" or "bytes", with or without "per second".
func isUnitTail(s string) bool {
	s = strings.ToLower(s)
	s = strings.TrimPrefix(s, "i")
	for _, unit := range []string{"bits", "bit", "bytes", "byte", "b"} {
		if rest, ok := strings.CutPrefix(s, unit); ok {
			s = rest
			break
		}
	}
	return s == "" || s == "ps" || isPerSecond(s)
}

func isPerSecond(s string) bool {
	return s == "/s" || s == "/sec" || s == "/second"
}

// ParseWhole reads a whole decimal number, possibly negative, for options that take no
// unit (-p, -P, -M, …). 5.0 is 5, because schedulers pass floats; 2.5, 5201abc and a
// missing number are errors, where iperf3 reads 2, 5201 and 0.
func ParseWhole(s string) (int64, error) {
	n, err := parsePlain(s)
	if err != nil {
		return 0, err
	}
	switch {
	case !n.IsInt():
		return 0, &SyntaxError{"number", s, "not a whole number"}
	case !n.Num().IsInt64():
		return 0, &SyntaxError{"number", s, "too large"}
	}
	return n.Num().Int64(), nil
}

// ParseSeconds reads a number of seconds, possibly with a fraction and possibly
// negative (the caller knows the range). Fractions below a nanosecond are rounded.
func ParseSeconds(s string) (time.Duration, error) {
	n, err := parsePlain(s)
	if err != nil {
		return 0, err
	}
	d, why := duration(n, time.Second)
	if why != "" {
		return 0, &SyntaxError{"number", s, why}
	}
	return d, nil
}

func parsePlain(s string) (*big.Rat, error) {
	n, rest, why := scan(s)
	if why == "" && rest != "" {
		why = fmt.Sprintf("unexpected %q after the number", rest)
	}
	if why != "" {
		return nil, &SyntaxError{"number", s, why}
	}
	return n, nil
}

// ParseBased reads a whole number in C notation, as -S, -L and -A take it: 184, 0270
// (octal) or 0xb8.
func ParseBased(s string) (int64, error) {
	digits := strings.Trim(s, blanks)
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	base := 10
	if len(digits) > 1 && digits[0] == '0' {
		base, digits = 8, digits[1:]
		if digits[0]|0x20 == 'x' {
			base, digits = 16, digits[1:]
		}
	}
	v, err := strconv.ParseUint(digits, base, 63)
	if err != nil {
		return 0, &SyntaxError{"number", s, "not a whole number (decimal, 0octal or 0xhex)"}
	}
	if negative {
		return -int64(v), nil
	}
	return int64(v), nil
}

// Iperf3Amount prints bytes (or bytes per second) as iperf3 does, in at least four
// characters, a blank and a unit without plural: "12.0 MByte", " 110 MByte",
// "1.05 Mbit", "100577 Kbit".
//
// format is the letter of -f: k m g t for bits, K M G T for bytes, in that very unit;
// 'a' and 'A' choose the unit by the value, in bits and in bytes. The arithmetic
// follows iperf3's src/units.c (multiplication by an inverse that is itself rounded),
// so that every last digit agrees.
func Iperf3Amount(bytes float64, format byte) string {
	labels := [...]string{"bit", "Kbit", "Mbit", "Gbit", "Tbit"}
	step := 1000.0
	upper := format&0x20 == 0
	if upper {
		labels = [...]string{"Byte", "KByte", "MByte", "GByte", "TByte"}
		step = 1024
	}
	v := bytes
	if !upper {
		v *= 8
	}
	unit := max(prefix(format), 0)
	if format|0x20 == 'a' {
		for rest := v; rest >= step && unit < len(labels)-1; unit++ {
			rest /= step
		}
	}
	inverse := 1.0
	for range unit {
		inverse /= step
	}
	v *= inverse
	return fmt.Sprintf("%4s %s", significant(v), labels[unit])
}
