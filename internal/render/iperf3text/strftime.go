package iperf3text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftime formats t as C's strftime does in the C locale, which is the only one that
// iperf3 ever uses. It knows the conversions of POSIX and glibc's k, l, s, P and the
// flags _ - 0 ^ #; E and O change nothing. What is no conversion is copied. (iperf3
// prints nothing when the result has 100 characters or more; here there is no limit.)
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		c, n := parseConversion(format[i:])
		if n == 0 {
			b.WriteByte('%')
			continue
		}
		b.WriteString(c.format(t))
		i += n - 1
	}
	return b.String()
}

// conversion is one %… of a format.
type conversion struct {
	text  string // as written
	flag  byte   // last of _ - 0, 0 = none
	upper bool   // ^
	swap  bool   // #
	width int
	verb  byte
}

// parseConversion reads the conversion that s begins with and its length, 0 when s
// ends too early.
func parseConversion(s string) (c conversion, n int) {
	i := 1
	for ; i < len(s); i++ {
		switch s[i] {
		case '_', '-', '0':
			c.flag = s[i]
			continue
		case '^':
			c.upper = true
			continue
		case '#':
			c.swap = true
			continue
		}
		break
	}
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		c.width = min(c.width*10+int(s[i]-'0'), 1000)
	}
	if i < len(s) && (s[i] == 'E' || s[i] == 'O') {
		i++
	}
	if i >= len(s) {
		return c, 0
	}
	c.verb, c.text = s[i], s[:i+1]
	return c, i + 1
}

func (c conversion) format(t time.Time) string {
	if digits, pad, value, ok := c.number(t); ok {
		return c.pad(strconv.FormatInt(value, 10), digits, pad)
	}
	s, ok := c.words(t)
	switch {
	case !ok:
		return c.text
	case c.upper, c.swap && strings.ContainsRune("aAbBh", rune(c.verb)):
		s = strings.ToUpper(s)
	case c.swap:
		s = strings.ToLower(s)
	}
	return c.pad(s, 0, ' ')
}

// pad fills s from the left: numbers to their natural width, anything to the width
// asked for.
func (c conversion) pad(s string, natural int, with byte) string {
	switch c.flag {
	case '-':
		return s
	case '_':
		with = ' '
	case '0':
		with = '0'
	}
	want := max(natural, c.width)
	sign := ""
	if with == '0' && strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	if missing := want - len(sign) - len(s); missing > 0 {
		s = strings.Repeat(string(with), missing) + s
	}
	return sign + s
}

// number returns the value of a numeric conversion, how many digits it has and what
// fills them.
func (c conversion) number(t time.Time) (digits int, pad byte, value int64, ok bool) {
	isoYear, isoWeek := t.ISOWeek()
	weekday := int(t.Weekday())
	digits, pad = 2, '0'
	n := 0
	switch c.verb {
	case 'C':
		n = t.Year() / 100
	case 'd':
		n = t.Day()
	case 'e':
		n, pad = t.Day(), ' '
	case 'g':
		n = isoYear % 100
	case 'G':
		digits, n = 1, isoYear
	case 'H':
		n = t.Hour()
	case 'I':
		n = hour12(t)
	case 'j':
		digits, n = 3, t.YearDay()
	case 'k':
		n, pad = t.Hour(), ' '
	case 'l':
		n, pad = hour12(t), ' '
	case 'm':
		n = int(t.Month())
	case 'M':
		n = t.Minute()
	case 's':
		return 1, '0', t.Unix(), true
	case 'S':
		n = t.Second()
	case 'u':
		digits, n = 1, (weekday+6)%7+1
	case 'U':
		n = (t.YearDay() - 1 + 7 - weekday) / 7
	case 'V':
		n = isoWeek
	case 'w':
		digits, n = 1, weekday
	case 'W':
		n = (t.YearDay() - 1 + 7 - (weekday+6)%7) / 7
	case 'y':
		n = t.Year() % 100
	case 'Y':
		digits, n = 1, t.Year()
	default:
		return 0, 0, 0, false
	}
	return digits, pad, int64(n), true
}

func hour12(t time.Time) int {
	if h := t.Hour() % 12; h != 0 {
		return h
	}
	return 12
}

// words returns the text of the other conversions.
func (c conversion) words(t time.Time) (string, bool) {
	switch c.verb {
	case 'a':
		return t.Format("Mon"), true
	case 'A':
		return t.Format("Monday"), true
	case 'b', 'h':
		return t.Format("Jan"), true
	case 'B':
		return t.Format("January"), true
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006"), true
	case 'D', 'x':
		return t.Format("01/02/06"), true
	case 'F':
		return t.Format("2006-01-02"), true
	case 'n':
		return "\n", true
	case 'p':
		return t.Format("PM"), true
	case 'P':
		return t.Format("pm"), true
	case 'r':
		return t.Format("03:04:05 PM"), true
	case 'R':
		return t.Format("15:04"), true
	case 't':
		return "\t", true
	case 'T', 'X':
		return t.Format("15:04:05"), true
	case 'z':
		return t.Format("-0700"), true
	case 'Z':
		name, offset := t.Zone()
		if name == "" {
			name = fmt.Sprintf("%+03d", offset/3600)
		}
		return name, true
	case '%':
		return "%", true
	}
	return "", false
}
