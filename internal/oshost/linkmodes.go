package oshost

// linkModeSpeed maps the bits of ethtool's link mode masks to Mbit/s
// (include/uapi/linux/ethtool.h, enum ethtool_link_mode_bit_indices, up to Linux 6.14).
// Bits that are not here say other things (autonegotiation, ports, pause, FEC).
var linkModeSpeed = func() map[int]int {
	m := map[int]int{}
	add := func(mbit int, bits ...int) {
		for _, b := range bits {
			m[b] = mbit
		}
	}
	span := func(mbit, from, to int) {
		for b := from; b <= to; b++ {
			m[b] = mbit
		}
	}
	add(10, 0, 1, 99, 100, 101)
	add(100, 2, 3, 67, 90, 91)
	add(1000, 4, 5, 17, 41, 68)
	add(2500, 15, 47)
	add(5000, 48)
	add(10000, 12, 18, 19, 20)
	span(10000, 42, 46)
	add(20000, 21, 22)
	span(40000, 23, 26)
	span(56000, 27, 30)
	span(25000, 31, 33)
	add(50000, 34, 35, 40)
	span(50000, 52, 56)
	span(100000, 36, 39)
	span(100000, 57, 61)
	span(200000, 62, 66)
	span(400000, 69, 73)
	span(100000, 75, 79)
	span(200000, 80, 84)
	span(400000, 85, 89)
	add(10, 92, 102)
	span(800000, 93, 98)
	span(200000, 103, 108)
	span(400000, 109, 114)
	span(800000, 115, 120)
	return m
}()

// fastest returns the greatest speed in a mask of supported modes, 0 for none.
func fastest(mask []uint32) int {
	best := 0
	for word, v := range mask {
		for b := range 32 {
			if v&(1<<b) != 0 {
				best = max(best, linkModeSpeed[32*word+b])
			}
		}
	}
	return best
}
