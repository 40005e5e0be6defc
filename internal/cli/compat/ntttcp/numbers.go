package ntttcp

import (
	"math"
	"strconv"
	"strings"
)

// spaces are what isspace(3) takes for blanks.
const spaces = " \t\n\v\f\r"

// atoi reads a number as the C library does: leading blanks, a sign, digits; junk ends
// it, none at all is 0; what does not fit 64 bits is the nearest that does, of which the
// lower 32 are taken (glibc: (int) strtol). exact = the word is such a number and
// nothing else, and kept its value.
func atoi(s string) (n int32, exact bool) {
	t := strings.TrimLeft(s, spaces)
	end := 0
	if end < len(t) && (t[end] == '-' || t[end] == '+') {
		end++
	}
	digits := end
	for end < len(t) && '0' <= t[end] && t[end] <= '9' {
		end++
	}
	if end == digits {
		return 0, false
	}
	wide, _ := strconv.ParseInt(t[:end], 10, 64) // out of range gives the nearest
	n = int32(wide)
	return n, end == len(t) && int64(n) == wide
}

// unit reads ntttcp-for-linux's sizes and rates (src/util.c, unit_atod): a decimal
// number and one letter of kKmMgG, which multiplies by powers of k. Other letters, and
// what follows one, are ignored. ok = there was a number that fits. exact = nothing that
// would change the value was ignored.
func unit(s string, k float64) (n int64, exact, ok bool) {
	t := strings.TrimLeft(s, spaces)
	end := floatLen(t)
	f, err := strconv.ParseFloat(t[:end], 64)
	if end == 0 || err != nil {
		return 0, false, false
	}
	exact = true
	if end < len(t) {
		switch t[end] | 0x20 {
		case 'k':
			f *= k
		case 'm':
			f *= k * k
		case 'g':
			f *= k * k * k
		default:
			exact = false
		}
	}
	if math.Abs(f) >= 1<<62 {
		return 0, false, false
	}
	return int64(f), exact, true
}

// floatLen is the length of the decimal number that s begins with.
func floatLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digits := func() (n int) {
		for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
			n++
		}
		return n
	}
	n := digits()
	if i < len(s) && s[i] == '.' {
		i++
		n += digits()
	}
	if n == 0 {
		return 0
	}
	end := i
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		if digits() > 0 {
			end = i
		}
	}
	return end
}

// hasSuffix: s is a whole number with a letter of kKmMgG behind it, such as 64K.
func hasSuffix(s string) bool {
	if s == "" || !strings.ContainsRune("kKmMgG", rune(s[len(s)-1])) {
		return false
	}
	_, exact := atoi(s[:len(s)-1])
	return exact
}

// memory reads ntttcp.exe's sizes (ConvertMemoryUnit): atoi, × 1024 when a k, × 1048576
// when an m stands anywhere in the word. It computes with 32 bits; here a product that
// does not fit is not ok. exact as for atoi.
func memory(s string) (n int64, exact, ok bool) {
	i, whole := atoi(s)
	n = int64(i)
	for _, u := range []struct {
		letters string
		by      int64
	}{{"kK", 1 << 10}, {"mM", 1 << 20}} {
		if strings.ContainsAny(s, u.letters) {
			n *= u.by
			_, number := atoi(s[:len(s)-1])
			whole = number && strings.ContainsAny(s[len(s)-1:], u.letters)
			break
		}
	}
	return n, whole, n == int64(int32(n))
}
