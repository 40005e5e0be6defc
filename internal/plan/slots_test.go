package plan

import "testing"

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  Serve
		most   int // that run at once; 0 = all
		spent  bool
		serial int // tests one after the other that get one, of three
	}{
		{"no limit", Serve{}, 0, false, 3},
		{"two", Serve{MaxTests: 2}, 2, false, 3},
		{"exclusive", Serve{Exclusive: true}, 1, false, 3},
		{"one-off", Serve{OneOff: true}, 1, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.serve.Slots()
			got := 0
			for i := range 5 {
				others, begun, ok := k.Take()
				if !ok {
					break
				}
				if got++; others != i || begun != int64(i+1) {
					t.Errorf("take %d: %d others, test %d", i, others, begun)
				}
			}
			want := c.most
			if want == 0 {
				want = 5
			}
			if got != want || k.Full() != (c.most > 0) || k.Taken() != got || k.Begun() != int64(got) || k.Spent() != c.spent {
				t.Errorf("%d slots, full %v, %d taken, %d begun, spent %v", got, k.Full(), k.Taken(), k.Begun(), k.Spent())
			}
			k = c.serve.Slots()
			serial := 0
			for range 3 {
				if _, _, ok := k.Take(); ok {
					serial++
					k.Release()
				}
			}
			if serial != c.serial {
				t.Errorf("%d in a row, want %d", serial, c.serial)
			}
		})
	}
}

// TestSlotsWatch: a watcher hears of changes, and holds nobody up.
func TestSlotsWatch(t *testing.T) {
	k := Serve{}.Slots()
	c := make(chan struct{}, 1)
	k.Watch(c)
	for range 3 {
		k.Take()
	}
	select {
	case <-c:
	default:
		t.Error("nothing was told")
	}
	k.Release()
	select {
	case <-c:
	default:
		t.Error("the end was not told")
	}
}
