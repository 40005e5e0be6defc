package osnet

import (
	"encoding/hex"
	"net/netip"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

func TestDecodeSYN(t *testing.T) {
	const (
		v4 = "4500003c000040004006000a0a4d00010a4d0002"
		v6 = "6000000000280640fd770000000000000000000000000001fd770000000000000000000000000002"
	)
	tcp := func(offset, options string) string {
		return "9c401451000000010000000" + "0" + offset + "002faf000000000" + options
	}
	for _, c := range []struct {
		name, packet string
		want         *result.SYN
	}{
		{"all options", v4 + tcp("a", "020405b40402080a000000010000000001030307"), &result.SYN{MSS: 1460, SACK: true, Timestamps: true, WindowScale: true}},
		{"over IPv6", v6 + tcp("a", "020405a00402080a000000010000000001030307"), &result.SYN{MSS: 1440, SACK: true, Timestamps: true, WindowScale: true}},
		{"stripped to padding", v4 + tcp("a", "020404b001010101010101010101010101010101"), &result.SYN{MSS: 1200}},
		{"no options", v4 + tcp("5", ""), &result.SYN{}},
		{"a length beyond the end", v4 + tcp("6", "02040500"), &result.SYN{MSS: 1280}},
		{"a broken option ends it", v4 + tcp("6", "04020300"), &result.SYN{SACK: true}},
		{"cut short", v4 + "9c40", nil},
		{"an offset beyond the end", v4 + tcp("f", "020405b4"), nil},
		{"neither IPv4 nor IPv6", "00" + v4, nil},
		{"nothing", "", nil},
	} {
		b, err := hex.DecodeString(c.packet)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, decodeSYN(b)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

func FuzzDecodeSYN(f *testing.F) {
	f.Add([]byte{0x45})
	f.Fuzz(func(_ *testing.T, b []byte) { decodeSYN(b) })
}

// A connection that was accepted knows its SYN, once; one that was dialled has none.
func TestSavedSYN(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	ln, err := Listen(t.Context(), "tcp", netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // of a test
	dialled, _, err := Dial(t.Context(), "tcp", ln.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close() //nolint:errcheck // of a test
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := NewConn(nc)
	defer accepted.Close() //nolint:errcheck // of a test
	syn, err := accepted.SavedSYN()
	if err != nil || syn == nil || syn.MSS < 536 {
		t.Fatalf("%+v, %v", syn, err)
	}
	info, err := accepted.TCPInfo()
	if err != nil || info.SACK != syn.SACK || info.Timestamps != syn.Timestamps || info.AdvMSS < 536 {
		t.Errorf("TCP_INFO %+v, %v; the SYN %+v", info, err, syn)
	}
	if again, err := accepted.SavedSYN(); again != nil || err != nil {
		t.Errorf("again: %+v, %v", again, err)
	}
	if none, err := dialled.SavedSYN(); none != nil || err != nil {
		t.Errorf("dialled: %+v, %v", none, err)
	}
}
