package capture

import "slices"

// tracker follows a TCP stream: which of its bytes passed. Its numbers are TCP's, made 64 bits wide
// so that they do not wrap.
type tracker struct {
	begun bool
	high  int64  // behind the highest byte that passed
	holes []span // below high, in order, that did not
	given int64  // bytes of holes that were forgotten, since there were too many
}

type span struct{ from, to int64 }

// maxHoles bounds the memory of one flow.
const maxHoles = 4096

// begin says where the stream begins.
func (t *tracker) begin(seq uint32) {
	if !t.begun {
		t.begun, t.high = true, int64(seq)
	}
}

// wide is seq next to the highest number so far.
func (t *tracker) wide(seq uint32) int64 {
	return t.high + int64(int32(seq-uint32(t.high)))
}

// take notes a segment and returns how many of its bytes had not passed before.
func (t *tracker) take(seq uint32, n int) (fresh int64) {
	t.begin(seq)
	from := t.wide(seq)
	to := from + int64(n)
	if from > t.high {
		t.holes = append(t.holes, span{t.high, from})
		if len(t.holes) > maxHoles {
			t.given += t.holes[0].to - t.holes[0].from
			t.holes = slices.Delete(t.holes, 0, 1)
		}
	}
	if to > t.high {
		fresh = to - max(from, t.high)
		t.high = to
	}
	// What fills holes is new as well.
	i, _ := slices.BinarySearchFunc(t.holes, from, func(s span, v int64) int {
		if s.to <= v {
			return -1
		}
		return 1
	})
	for i < len(t.holes) && t.holes[i].from < to {
		h := t.holes[i]
		a, b := max(h.from, from), min(h.to, to)
		if a >= b {
			i++
			continue
		}
		fresh += b - a
		var left []span
		if h.from < a {
			left = append(left, span{h.from, a})
		}
		if b < h.to {
			left = append(left, span{b, h.to})
		}
		t.holes = slices.Replace(t.holes, i, i+1, left...)
		i += len(left)
	}
	return fresh
}

// missing is how many bytes below the highest one never passed.
func (t *tracker) missing() (n int64) {
	for _, h := range t.holes {
		n += h.to - h.from
	}
	return n + t.given
}
