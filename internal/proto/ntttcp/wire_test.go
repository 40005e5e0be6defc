package ntttcp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWordBytes(t *testing.T) {
	for _, c := range []struct {
		w    Word
		hex  string
		name string
	}{
		{WordState, "00000058", "'X'"},
		{WordStart, "00000052", "'R'"},
		{WordLast, "0000004c", "'L'"},
		{WordWait, "00000057", "'W'"},
		{WordEnd, "00000045", "'E'"},
		{StateIdle, "0000000b", "11"},
		{StateRunning, "0000000c", "12"},
		{StateFinished, "0000000d", "13"},
		{-1, "ffffffff", "-1"},
		{86400, "00015180", "86400"},
	} {
		b := c.w.Append(nil)
		if got := hex.EncodeToString(b); got != c.hex {
			t.Errorf("%v: %s, want %s", c.w, got, c.hex)
		}
		if w, n := ParseWord(b); w != c.w || n != WordSize {
			t.Errorf("parse %s: %v, %d", c.hex, w, n)
		}
		if c.w.String() != c.name {
			t.Errorf("name %q, want %q", c.w.String(), c.name)
		}
	}
	if _, n := ParseWord([]byte{0, 0, 0}); n != 0 {
		t.Error("three bytes are no word")
	}
}

func TestReadWordAcrossSegments(t *testing.T) {
	b := append(WordState.Append(nil), Word(60).Append(nil)...)
	r := &mixed{r: iotest.OneByteReader(bytes.NewReader(b))}
	for _, want := range []Word{WordState, 60} {
		if it, err := r.next(); err != nil || it.w != want || it.frame != 0 {
			t.Errorf("%+v, %v; want %v", it, err, want)
		}
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := (&mixed{r: bytes.NewReader(b[:6][4:])}).next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in the middle: %v", err)
	}
}

func TestProposal(t *testing.T) {
	for d, want := range map[time.Duration]Word{
		0: 0, time.Second: 1, 1500 * time.Millisecond: 2, 60 * time.Second: 60,
		69 * time.Second: 70, 76 * time.Second: 77, 82 * time.Second: 83, 88 * time.Second: 89,
		87 * time.Second: 87, 11 * time.Second: 11, 1 << 62: maxCycle,
	} {
		if got := proposal(d); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
}

func TestAgreement(t *testing.T) {
	for _, c := range []struct {
		own, proposed Word
		multi         bool
		want          Word
	}{
		{60, 60, false, 60},
		{3, 1, false, 3},
		{1, 3, false, 3},
		{2, 0, false, 0},
		{0, 5, false, 0},
		{0, 0, false, 0},
		{5, -1, false, 5},
		{2, 9, true, 2},
		{0, 9, true, 0},
		{2, 0, true, 2},
		{60, 69, false, 69},
		{60, 82, false, 82},
		{5, maxCycle, false, maxCycle},
	} {
		if got := agreement(c.own, c.proposed, c.multi); got != c.want {
			t.Errorf("own %d, proposed %d, multi %v: %d, want %d", c.own, c.proposed, c.multi, got, c.want)
		}
	}
}

func TestDialog(t *testing.T) {
	const refused = ask(0)
	for _, c := range []struct {
		name  string
		words []Word
		want  []ask
	}{
		{"modern", []Word{'X', 60, 'R', 'E'}, []ask{askState, askTime, askStart, askEnd}},
		{"last", []Word{'X', 60, 'L'}, []ask{askState, askTime, askLast}},
		{"69 is a time", []Word{'X', 69, 'R'}, []ask{askState, askTime, askStart}},
		{"76 is a time", []Word{'X', 76, 'R'}, []ask{askState, askTime, askStart}},
		{"82 is a time", []Word{'X', 82, 'R'}, []ask{askState, askTime, askStart}},
		{"88 is a time", []Word{'X', 88, 'R'}, []ask{askState, askTime, askStart}},
		{"zero and negative", []Word{'X', 0, -5, 'R'}, []ask{askState, askTime, askTime, askStart}},
		{"start without a time", []Word{'R'}, []ask{askStart}},
		{"twice", []Word{'X', 5, 'R', 'R', 'X', 'E'}, []ask{askState, askTime, askStart, askStart, askState, askEnd}},
		{"again", []Word{'X', 5, 'X', 6, 'R'}, []ask{askState, askTime, askState, askTime, askStart}},
		{"end before the start", []Word{'X', 5, 'E'}, []ask{askState, askTime, askEnd}},
		{"HTTP", []Word{0x47455420}, []ask{refused}},
		{"TLS", []Word{0x16030100}, []ask{refused}},
		{"a time first", []Word{60}, []ask{refused}},
		{"E first", []Word{'E'}, []ask{refused}},
		{"a time while running", []Word{'X', 5, 'R', 7}, []ask{askState, askTime, askStart, refused}},
	} {
		var d dialog
		var got []ask
		for _, w := range c.words {
			a, err := d.hear(w)
			if (a == refused) != (err != nil) {
				t.Errorf("%s: %v says %v and %v", c.name, w, a, err)
			}
			got = append(got, a)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestDialogAfterBusy(t *testing.T) {
	var d dialog
	_, _ = d.hear(WordState)
	d.busy()
	if a, err := d.hear(WordState); a != askState || err != nil {
		t.Errorf("asking again: %v, %v", a, err)
	}
}

func TestSchedule(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name               string
		cycle, warmup, own time.Duration
		want               schedule
	}{
		{"plain", 2 * s, 0, 2 * s, schedule{measured: 2 * s}},
		{"warm-up and cool-down", 3 * s, s, s, schedule{warmup: s, measured: s, cooldown: s}},
		{"the other end is longer", 3 * s, 0, s, schedule{measured: s, cooldown: 2 * s}},
		{"the other end is shorter", s, 0, 3 * s, schedule{measured: s}},
		{"follow", 5 * s, s, 0, schedule{warmup: s, measured: 4 * s}},
		{"endless", 0, s, 9 * s, schedule{warmup: s}},
		{"all warm-up", 2 * s, 3 * s, s, schedule{warmup: 2 * s, measured: -1}},
	} {
		got := scheduleOf(c.cycle, c.warmup, c.own)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(schedule{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if got.cycle() != c.cycle {
			t.Errorf("%s: cycle %v, want %v", c.name, got.cycle(), c.cycle)
		}
	}
	late := schedule{warmup: s, measured: 2 * s, cooldown: s}
	for by, want := range map[time.Duration]schedule{
		0:         late,
		s / 2:     {warmup: s, measured: 2 * s, cooldown: s / 2},
		3 * s:     {measured: s},
		4 * s:     {measured: -1},
		-s:        late,
		5 * s / 2: {measured: 3 * s / 2},
	} {
		if diff := cmp.Diff(want, late.late(by), cmp.AllowUnexported(schedule{})); diff != "" {
			t.Errorf("late by %v: %s", by, diff)
		}
	}
}

func TestWindowsBytes(t *testing.T) {
	if got := hex.EncodeToString(AppendPort(nil, 5002)); got != "8a130000" { // as recorded
		t.Errorf("port 5002: %s", got)
	}
	for in, want := range map[string]uint16{"8a130000": 5002, "01000000": 1, "ffff0000": 65535} {
		b, _ := hex.DecodeString(in)
		if got, err := ParsePort(b); err != nil || got != want {
			t.Errorf("%s: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "8a13", "00000000", "00000100", "ffffffff", "8a13000000"} {
		b, _ := hex.DecodeString(in)
		if got, err := ParsePort(b); err == nil {
			t.Errorf("%s: taken for port %d", in, got)
		}
	}
}

// FuzzSync: whatever comes on a sync connection, however cut, is heard as the same words, and a
// receiver's dialog neither fails nor starts a test that was not asked for.
func FuzzSync(f *testing.F) {
	for _, rec := range recordings(f) {
		for _, b := range rec.syncBytes() {
			f.Add(b, uint8(3))
		}
	}
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		r := &mixed{r: io.MultiReader(bytes.NewReader(b[:min(int(cut), len(b))]), bytes.NewReader(b[min(int(cut), len(b)):]))}
		var d dialog
		asked, started := false, false
		for rest := b; ; {
			want, n := ParseWord(rest)
			it, err := r.next()
			got := it.w
			if (err == nil) != (n > 0) || err == nil && got != want {
				t.Fatalf("%x: heard %v (%v), want %v", b, got, err, want)
			}
			if err != nil {
				return
			}
			rest = rest[n:]
			if again, m := ParseWord(got.Append(nil)); again != got || m != WordSize {
				t.Fatalf("%v does not survive", got)
			}
			before := d.at
			a, err := d.hear(got)
			if err != nil {
				if a != 0 || d.at != before {
					t.Fatalf("%x: an unknown word changes something", b)
				}
				continue
			}
			asked = asked || got == WordStart || got == WordLast
			started = started || a == askStart || a == askLast
			if started && !asked {
				t.Fatalf("%x: started without R or L", b)
			}
			if a == askTime && agreement(60, got, false) < 0 {
				t.Fatalf("%v is answered with a refusal", got)
			}
		}
	})
}

// FuzzSyncPort: the port message of the Windows dialect.
func FuzzSyncPort(f *testing.F) {
	f.Add([]byte{0x8a, 0x13, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePort(b)
		if err == nil && !bytes.Equal(AppendPort(nil, p), b) {
			t.Fatalf("%x is not how port %d is written", b, p)
		}
	})
}
