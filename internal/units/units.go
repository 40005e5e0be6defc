// Package units reads and prints sizes, rates and durations, in the spelling of
// each command line that we answer to.
//
// Three dialects are kept apart because the same letters mean different things:
//
//   - iperf3's options (Iperf3… functions): K, M, G, T are powers of 1000 for
//     rates and of 1024 for sizes, case makes no difference (spec iperf3-cli §1.1).
//   - ours (ParseRate, ParseSize, ParseDuration): rates are decimal; a size with a
//     bare letter is binary as in iperf3 (128K = 131072), one that is written as a
//     unit follows the standard: 128kB = 128000, 128KiB = 131072. Ki, Mi, Gi, Ti
//     are always binary.
//   - iperf3's output (Iperf3Amount): bits in steps of 1000, bytes in steps of 1024,
//     four characters wide (spec iperf3-cli §5.3).
//
// No parser guesses: junk, signs and unknown units are errors that name the value.
package units

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// BitRate is a rate in bits per second. Zero means "none" or "unlimited", as the
// place that holds it says; it is never negative.
type BitRate int64

// Decimal multiples of a bit per second.
const (
	BitPerSecond BitRate = 1
	KbitPerSec           = 1000 * BitPerSecond
	MbitPerSec           = 1000 * KbitPerSec
	GbitPerSec           = 1000 * MbitPerSec
	TbitPerSec           = 1000 * GbitPerSec
)

// ByteSize is a number of bytes (or, for iperf3's -k, of blocks). It is never negative.
type ByteSize int64

// Binary multiples of a byte.
const (
	Byte ByteSize = 1
	KiB           = 1024 * Byte
	MiB           = 1024 * KiB
	GiB           = 1024 * MiB
	TiB           = 1024 * GiB
)

// SyntaxError is a value that cannot be read. Its text names the value and what is
// wrong with it: `rate "1Q": unknown unit "Q"`.
type SyntaxError struct {
	Kind  string // what was expected: "rate", "size", "number", "duration"
	Value string // as given
	Why   string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Value, e.Why) }

// maxNumber and maxExponent bound a number's text and exponent, so that reading a
// hostile value costs no more than reading a sensible one.
const (
	maxNumber   = 64
	maxExponent = 64
	blanks      = " \t\n\v\f\r" // isspace of the C locale
)

// scan splits s into a leading number and the rest. Blanks around s are dropped:
// some callers pass "-w 2M" as one word, and shells leave blanks behind. The number is a C
// floating-point literal, exactly as written: 10, +1.5, -3, .5, 1e6, 0x10. An empty
// why means success.
func scan(s string) (n *big.Rat, rest, why string) {
	s = strings.Trim(s, blanks)
	if s == "" {
		return nil, "", "empty"
	}
	end := 0
	if s[0] == '+' || s[0] == '-' {
		end = 1
	}
	digit := isDecimal
	expo := "eE"
	if len(s) > end+2 && s[end] == '0' && (s[end+1] == 'x' || s[end+1] == 'X') && isHex(s[end+2]) {
		digit, expo = isHex, "pP"
		end += 2
	}
	digits := 0
	for ; end < len(s) && digit(s[end]); end++ {
		digits++
	}
	if end < len(s) && s[end] == '.' && (digits > 0 || end+1 < len(s) && digit(s[end+1])) {
		for end++; end < len(s) && digit(s[end]); end++ {
			digits++
		}
	}
	if digits == 0 {
		return nil, "", "not a number"
	}
	exponent := 0
	mantissa := end
	if end < len(s) && strings.IndexByte(expo, s[end]) >= 0 {
		i := end + 1
		neg := false
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			neg = s[i] == '-'
			i++
		}
		first := i
		for ; i < len(s) && isDecimal(s[i]); i++ {
			exponent = min(10*exponent+int(s[i]-'0'), maxExponent+1)
		}
		if i > first {
			end = i
			if neg {
				exponent = -exponent
			}
		} else {
			exponent = 0
		}
	}
	if mantissa > maxNumber || exponent > maxExponent || exponent < -maxExponent {
		return nil, "", "too long a number"
	}
	n, ok := new(big.Rat).SetString(strings.TrimSuffix(s[:mantissa], ".") + exponentOf(expo, exponent))
	if !ok {
		return nil, "", "not a number"
	}
	return n, s[end:], ""
}

func exponentOf(expo string, exponent int) string {
	if exponent == 0 {
		return ""
	}
	return fmt.Sprintf("%c%d", expo[0], exponent)
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// amount turns n×multiplier into a whole, non-negative number. Fractions are cut, as
// iperf3 does (1.5K = 1536), but never to nothing: half a byte is not "no limit".
func amount(n *big.Rat, multiplier int64) (v int64, why string) {
	if n.Sign() < 0 {
		return 0, "must not be negative"
	}
	n.Mul(n, new(big.Rat).SetInt64(multiplier))
	whole := new(big.Int).Quo(n.Num(), n.Denom())
	if !whole.IsInt64() {
		return 0, "too large"
	}
	if n.Sign() > 0 && whole.Sign() == 0 {
		return 0, "too small"
	}
	return whole.Int64(), ""
}

// power returns base^exp for the small exponents of unit prefixes.
func power(base int64, exp int) int64 {
	v := int64(1)
	for range exp {
		v *= base
	}
	return v
}

// prefix reports which power of 1000 or 1024 a prefix letter stands for; 0 = none.
func prefix(c byte) int {
	return strings.IndexByte(" kmgt", c|0x20)
}

// significant formats v with three significant digits: 9.41, 94.1, 941.
func significant(v float64) string {
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// scaled divides v by step until three digits suffice and returns the number and how
// often it was divided. It looks at the rounded value, so 999.6 becomes 1.00 of the
// next unit.
func scaled(v float64, step float64, most int) (string, int) {
	n := 0
	for n < most && math.Round(v) >= min(step, 1000) {
		v /= step
		n++
	}
	if n == 0 {
		return fmt.Sprintf("%.0f", v), 0
	}
	return significant(v), n
}
