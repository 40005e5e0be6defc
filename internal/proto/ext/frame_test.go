package ext

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

func TestDecode(t *testing.T) {
	whole := Append(nil, FrameEvent, []byte(`{"a":1}`))
	if !bytes.Equal(whole, []byte("\x47\x00\x00\x00\x07{\"a\":1}")) {
		t.Fatalf("% x", whole)
	}
	for i := 1; i < len(whole); i++ {
		if _, _, n, err := Decode(whole[:i], MaxFrame); n != 0 || err != nil {
			t.Errorf("of %d bytes: %d %v", i, n, err)
		}
	}
	f, doc, n, err := Decode(append(whole, 'x'), MaxFrame)
	if f != FrameEvent || string(doc) != `{"a":1}` || n != len(whole) || err != nil {
		t.Errorf("%v %q %d %v", f, doc, n, err)
	}
	for name, c := range map[string]struct {
		b    string
		want error
	}{
		"empty": {"\x47\x00\x00\x00\x00", ErrEmpty}, "too long": {"\x47\x00\x00\x00\x08", ErrTooLong}, "much too long": {"\x47\xff\xff\xff\xff", ErrTooLong},
	} {
		if _, _, n, err := Decode([]byte(c.b), 7); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d %v", name, n, err)
		}
	}
}

// TestFrameBytes: which first bytes are frames is the wire's, not this program's.
func TestFrameBytes(t *testing.T) {
	for b := range 256 {
		if got := Frame(b).Valid(); got != (b >= 0x46 && b <= 0x4f) {
			t.Errorf("%#x: %v", b, got)
		}
	}
	seen := map[string]bool{}
	for f := firstFrame; f <= lastFrame; f++ {
		if name := f.String(); seen[name] || !strings.HasPrefix(name, "fullbore ") {
			t.Errorf("%#x is %q", byte(f), name)
		} else {
			seen[name] = true
		}
	}
}

func TestHellos(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"v":1}`: true, `{"v":2,"time_s":60,"omit_s":5,"cooldown_s":60,"else":[]}`: true,
		`{}`: false, `{"v":0}`: false, `[]`: false, ``: false, `{"v":1,"time_s":-1}`: false, `{"v":1,"time_s":61}`: false,
		`{"v":1,"omit_s":6}`: false, `{"v":1,"cooldown_s":61}`: false, `{"v":1,"streams":-1}`: false, `{"v":"1"}`: false,
	} {
		if h := DecodeClientHello([]byte(doc), time.Minute, 5*time.Second); (h != nil) != want {
			t.Errorf("%s: %+v", doc, h)
		}
	}
	h := DecodeServerHello([]byte(`{"v":1,"version":"1\u001b[m","features":["events"],"host":{"name":"a\u0007b"}}`))
	if h == nil || h.Version != "1[m" || h.Host.Name != "ab" || !h.Has(FeatureEvents) || h.Has(FeatureUDP) {
		t.Errorf("%+v", h)
	}
	if DecodeServerHello([]byte(`{"v":0}`)) != nil || (*ServerHello)(nil).Has(FeatureEvents) || (*ClientHello)(nil).Has(FeatureEvents) {
		t.Error("nothing is something")
	}
}

// TestFacts: a stranger learns system, release and number of cores.
func TestFacts(t *testing.T) {
	full := &result.Host{Name: "n", OS: "linux", Release: "6", Cores: 2, CPUModel: "m"}
	if Facts(full, true) != full || Facts(nil, false) != nil {
		t.Error("not what was given")
	}
	if got := *Facts(full, false); got != (result.Host{OS: "linux", Release: "6", Cores: 2}) {
		t.Errorf("a stranger learns %+v", got)
	}
}

func TestLimits(t *testing.T) {
	if (Limits{}).OrNil() != nil || (Limits{MaxStreams: 1}).OrNil() == nil {
		t.Error("OrNil")
	}
}

// TestReadClock: the clock does not go back, and its wall is what it was given.
func TestReadClock(t *testing.T) {
	wall := time.Unix(1, 5)
	a, b := ReadClock(wall), ReadClock(wall)
	if a.Wall != 1e9+5 || b.Mono < a.Mono || a.Mono <= 0 {
		t.Errorf("%+v %+v", a, b)
	}
}
