package ntttcp

import "testing"

func TestAtoi(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		n     int32
		exact bool
	}{
		"8": {8, true}, " 8": {8, true}, "+8": {8, true}, "-8": {-8, true}, "08": {8, true},
		"": {0, false}, "abc": {0, false}, "-": {0, false}, "8x": {8, false}, "8 ": {8, false}, "1.5": {1, false}, "0x10": {0, false},
		"2147483647": {2147483647, true}, "2147483648": {-2147483648, false}, "4294967297": {1, false},
		"99999999999999999999": {-1, false}, // LONG_MAX, lower half
	} {
		if n, exact := atoi(in); n != want.n || exact != want.exact {
			t.Errorf("%q: %d %v, want %+v", in, n, exact, want)
		}
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		n         int64
		exact, ok bool
	}{
		"64K": {65536, true, true}, "64k": {65536, true, true}, "1.5M": {1572864, true, true}, "1g": {1 << 30, true, true},
		"65536": {65536, true, true}, "1e3": {1000, true, true}, "1e3k": {1024000, true, true}, ".5k": {512, true, true}, "-1": {-1, true, true},
		"10T": {10, false, true}, "64KB": {65536, true, true}, "1e": {1, false, true}, "5.": {5, true, true},
		"": {}, "abc": {}, ".": {}, "-": {}, "1e300": {}, "1e18g": {}, "K": {},
	} {
		if n, exact, ok := unit(in, 1024); n != want.n || exact != want.exact || ok != want.ok {
			t.Errorf("%q: %d %v %v, want %+v", in, n, exact, ok, want)
		}
	}
	if n, _, _ := unit("200M", 1000); n != 200e6 {
		t.Errorf("a rate of 200M: %d", n)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		n         int64
		exact, ok bool
	}{
		"64K": {65536, true, true}, "1m": {1 << 20, true, true}, "20480": {20480, true, true}, "-1": {-1, true, true},
		"1.5M": {1 << 20, false, true}, "4G": {4, false, true}, "64KB": {65536, false, true}, "k": {0, false, true}, "junk": {0, false, true},
		"2047M": {2047 << 20, true, true}, "2048M": {1 << 31, true, false},
	} {
		if n, exact, ok := memory(in); n != want.n || exact != want.exact || ok != want.ok {
			t.Errorf("%q: %d %v %v, want %+v", in, n, exact, ok, want)
		}
	}
}
