package units_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/internal/units"
)

const giga, mega = units.GbitPerSec, units.MbitPerSec

// The goldens of recipes §3, to the digit they are given with.
func TestConvertRateGoldens(t *testing.T) {
	for _, c := range []struct {
		rate     units.BitRate
		from, to units.Layer
		payload  int
		mbit     float64
		digit    float64
	}{
		{1000 * mega, units.L7, units.L7, 1400, 1000, 0},
		{1000 * mega, units.L7, units.L4, 1400, 1005.714, 0.0005},
		{1000 * mega, units.L7, units.L3, 1400, 1020.0, 0},
		{1000 * mega, units.L7, units.L2, 1400, 1032.86, 0.005},
		{1000 * mega, units.L7, units.L1, 1400, 1047.14, 0.005},
		{giga, units.L1, units.L7, 1400, 954.98, 0.005},
		{giga, units.L1, units.L7, 1472, 957.09, 0.005},
		{giga, units.L1, units.L1, 1472, 1000, 0},
		{84 * mega, units.L1, units.L2, 1, 64, 0}, // the smallest frame: 64 bytes, 84 on the line
		{84 * mega, units.L1, units.L7, 18, 18, 0},
		{85 * mega, units.L1, units.L7, 19, 19, 0},
	} {
		got := float64(units.ConvertRate(c.rate, c.from, c.to, c.payload, false, 0)) / 1e6
		if math.Abs(got-c.mbit) > c.digit {
			t.Errorf("%v of %d bytes, %v → %v: %v Mbit/s, want %v", c.rate, c.payload, c.from, c.to, got, c.mbit)
		}
	}
	// IPv6 and a tag add 24 bytes.
	if got := units.ConvertRate(1000*mega, units.L7, units.L2, 1400, true, 1); got != 1_050_000_000 {
		t.Errorf("IPv6 with a tag: %d", got)
	}
}

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		h       units.Headers
		payload int
		want    [5]int
	}{
		{units.UDPHeaders(false, 0), 1472, [5]int{1472, 1480, 1500, 1518, 1538}},
		{units.UDPHeaders(true, 0), 1452, [5]int{1452, 1460, 1500, 1518, 1538}},
		{units.UDPHeaders(false, 2), 1472, [5]int{1472, 1480, 1500, 1526, 1546}},
		{units.UDPHeaders(false, 0), 16, [5]int{16, 24, 44, 64, 84}},
		{units.TCPHeaders(false, 0, true), 1448, [5]int{1448, 1480, 1500, 1518, 1538}},
		{units.TCPHeaders(false, 0, false), 1460, [5]int{1460, 1480, 1500, 1518, 1538}},
		{units.TCPHeaders(true, 1, true), 1428, [5]int{1428, 1460, 1500, 1522, 1542}},
	} {
		for l := units.L7; l <= units.L1; l++ {
			if got := c.h.Bytes(c.payload, l); got != c.want[l] {
				t.Errorf("%+v with %d on %v: %d, want %d", c.h, c.payload, l, got, c.want[l])
			}
		}
	}
}

func TestConvertIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := units.BitRate(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate"))
		h := units.TCPHeaders(rapid.Bool().Draw(t, "v6"), rapid.IntRange(0, 3).Draw(t, "tags"), rapid.Bool().Draw(t, "timestamps"))
		payload := rapid.IntRange(1, 65507).Draw(t, "payload")
		from := units.Layer(rapid.IntRange(0, 4).Draw(t, "from"))
		to := units.Layer(rapid.IntRange(0, 4).Draw(t, "to"))
		want := new(big.Rat).SetFrac64(int64(h.Bytes(payload, to)), int64(h.Bytes(payload, from)))
		want.Mul(want, new(big.Rat).SetInt64(int64(rate)))
		got := h.Convert(rate, from, to, payload)
		if got == math.MaxInt64 {
			if most := new(big.Rat).SetInt64(math.MaxInt64 - 1); want.Cmp(most) < 0 {
				t.Fatalf("saturated at %v", want)
			}
			return
		}
		off := new(big.Rat).Sub(want, new(big.Rat).SetInt64(int64(got)))
		if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
			t.Fatalf("%d is %v off", got, off)
		}
	})
}

func TestParseLayer(t *testing.T) {
	for l := units.L7; l <= units.L1; l++ {
		if got, err := units.ParseLayer(l.String()); err != nil || got != l {
			t.Errorf("%v: %v, %v", l, got, err)
		}
	}
	if got, err := units.ParseLayer("L1"); err != nil || got != units.L1 {
		t.Errorf("L1: %v, %v", got, err)
	}
	for _, s := range []string{"", "l5", "1", "l7 "} {
		var e *units.SyntaxError
		if _, err := units.ParseLayer(s); !errors.As(err, &e) || e.Value != s {
			t.Errorf("%q: %v", s, err)
		}
	}
}
