package html_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/internal/render/html"
	"github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/result"
)

// aDay is the document of a soak of 24 h: 86,400 intervals of each direction, read from its JSON.
func aDay(t testing.TB) *result.Report {
	t.Helper()
	var doc bytes.Buffer
	if err := json.WriteReport(&doc, sample.SoakOfADay()); err != nil {
		t.Fatal(err)
	}
	rep, err := result.ReadReport(&doc)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestSoakOfADay: the page of 86,400 intervals is below 2 MB and still shows what was bad. (How long
// it takes is BenchmarkSoakOfADay's to say: 2 s are allowed, some hundredths are needed.)
func TestSoakOfADay(t *testing.T) {
	rep := aDay(t)
	began := time.Now()
	text := page(t, rep)
	t.Logf("%d bytes in %v", len(text), time.Since(began))
	if len(text) >= 2_000_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	sound(t, "soak", text)
	for _, want := range []string{"Soak of the path to 192.0.2.2", "Steadiness down", "98.710 %", "level -20 % after 13h53m20s", "Hour by hour", "100 more are in the document.", "the path did not answer", "30 % of a core, 2400 MHz, 61 °C, 31.0 MB", "slowed for heat 2 times"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(text, "<tr>"); n > 500 {
		t.Errorf("%d rows of tables", n)
	}
}

func BenchmarkSoakOfADay(b *testing.B) {
	rep := aDay(b)
	for b.Loop() {
		var out bytes.Buffer
		if err := html.WriteReport(&out, rep); err != nil {
			b.Fatal(err)
		}
	}
}
