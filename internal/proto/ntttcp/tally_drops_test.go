package ntttcp

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// fakeSocket has dropped so many; below 0 it does not tell.
type fakeSocket struct{ n int64 }

func (f *fakeSocket) SocketDrops() (int64, error) {
	if f.n < 0 {
		return 0, errors.ErrUnsupported
	}
	return f.n, nil
}

// TestAccount: drops since the test began, of the streams of their socket.
func TestAccount(t *testing.T) {
	t.Parallel()
	a, b, c := &fakeSocket{n: 1<<32 - 5}, &fakeSocket{n: 100}, &fakeSocket{n: -1}
	y := newTally(schedule{}, 1, 0, nil, nil)
	y.watch([]dropper{a, b, c})
	for i, f := range []datagramFlow{
		{0, netip.MustParseAddrPort("192.0.2.1:1")},
		{1, netip.MustParseAddrPort("192.0.2.1:2")},
		{1, netip.MustParseAddrPort("192.0.2.1:3")},
		{2, netip.MustParseAddrPort("192.0.2.1:4")},
	} {
		y.addRun(f, result.Addr{}, 100, 10*(i+1))
	}
	a.n, b.n = 5, 107 // a's counter went round
	drops := func(lost []int64, alone bool) (out []int64) {
		for _, r := range y.account(lost, alone) {
			if r.SocketDrops == nil {
				out = append(out, -1)
			} else {
				out = append(out, *r.SocketDrops)
			}
		}
		return out
	}
	for name, d := range map[string][2][]int64{
		"by what came":       {drops(nil, true), {10, 3, 4, -1}},
		"by what was lost":   {drops([]int64{10, 1, 6, 5}, true), {10, 1, 6, -1}},
		"nothing was lost":   {drops([]int64{0, 0, 0, 0}, true), {10, 7, 0, -1}},
		"others were served": {drops(nil, false), {-1, -1, -1, -1}},
	} {
		if diff := cmp.Diff(d[1], d[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := y.account(nil, true)[2]; got.Packets != 30 || got.Bytes != 3000 {
		t.Errorf("%+v", got)
	}
}
