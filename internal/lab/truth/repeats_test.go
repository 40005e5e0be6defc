package truth_test

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

func TestRepeats(t *testing.T) {
	const isn = 1<<32 - 500 // sequence numbers wrap
	at := func(byteNumber int) uint32 { return uint32(isn + 1 + byteNumber) }
	for _, c := range []struct {
		name     string
		segments [][]byte
		want     int64
	}{
		{"in order", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(1000), false, 1000)}, 0},
		{"one again", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(1000), false, 1000), tcp(a4, b4, at(0), false, 1000)}, 1},
		{"twice", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(0), false, 1000)}, 2},
		{"in smaller pieces", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(0), false, 500), tcp(a4, b4, at(500), false, 500)}, 2},
		{"with new bytes behind", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 500), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(1000), false, 10)}, 1},
		{"acknowledgements", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(0), false, 0), tcp(a4, b4, at(999), false, 0)}, 0},
		{"the SYN again", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, isn, true, 0)}, 1},
		{"a new connection on its ports", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, 7, true, 0), tcp(a4, b4, 8, false, 1000)}, 0},
		{"the other way", [][]byte{tcp(a4, b4, isn, true, 0), tcp(a4, b4, at(0), false, 1000), tcp(b4, a4, isn, true, 0), tcp(b4, a4, at(0), false, 1000)}, 0},
		{"of an unknown connection", [][]byte{tcp(a4, b4, at(0), false, 1000), tcp(a4, b4, at(0), false, 1000)}, 0},
		{"data on the SYN", [][]byte{tcp(a6, b6, isn, true, 100), tcp(a6, b6, at(100), false, 100), tcp(a6, b6, at(0), false, 100)}, 1},
		{"datagrams", [][]byte{udp(a4, b4, make([]byte, 100)), udp(a4, b4, make([]byte, 100))}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := truth.NewTracker()
			for _, s := range c.segments {
				if ref := tr.Enter(0, s); ref.Counts() != (c.name == "datagrams") {
					t.Errorf("counts as a datagram: %v", ref.Counts())
				}
			}
			if got := tr.Repeats(); got != c.want {
				t.Errorf("%d repeats, want %d", got, c.want)
			}
		})
	}
}
