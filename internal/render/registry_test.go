package render_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/result"
)

// counter notes when something was written.
type counter struct {
	text   bytes.Buffer
	writes int
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	return c.text.Write(p)
}

// TestAllOutputs prints every recorded run in every form, live and replayed from its
// fold: the two are the same, and what claims to be live is.
func TestAllOutputs(t *testing.T) {
	t.Parallel()
	for _, g := range goldentest.Iperf3(t, "*.json") {
		runs, err := iperf3json.DecodeAll(g.Data)
		if err != nil {
			t.Fatal(g.ID(), err)
		}
		for _, r := range runs {
			for _, o := range render.Outputs {
				var live counter
				var errs bytes.Buffer
				v := o.New(&live, render.Options{Err: &errs})
				for _, e := range result.Unfold(r) {
					v.Event(e)
				}
				before := live.writes
				if err := v.Close(); err != nil {
					t.Errorf("%s %s: %v", g.ID(), o.Name, err)
				}
				if r.Finished() && (before > 0) != o.Live {
					t.Errorf("%s %s: %d writes before the end, live is %v", g.ID(), o.Name, before, o.Live)
				}
				if live.text.Len()+errs.Len() == 0 {
					t.Errorf("%s %s: nothing printed", g.ID(), o.Name)
				}
				var again bytes.Buffer
				if err := render.Print(&again, o.Name, result.Fold(result.Unfold(r)), render.Options{}); err != nil {
					t.Errorf("%s %s: %v", g.ID(), o.Name, err)
				}
				if again.String() != live.text.String() {
					t.Errorf("%s %s: live and replay differ:\n%s\n%s", g.ID(), o.Name, live.text.String(), again.String())
				}
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestFullDisk: every form tells that it could not be written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	r, err := iperf3json.Decode(goldentest.One(t, "3.21", "tcp_json.client.json").Data)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range render.Outputs {
		if err := render.Print(full{}, o.Name, r, render.Options{}); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range render.Outputs {
		if got, err := render.Find(o.Name); err != nil || got.Name != o.Name || seen[o.Name] || o.Doc == "" {
			t.Errorf("%s: %v", o.Name, err)
		}
		seen[o.Name] = true
	}
	_, err := render.Find("xml")
	if err == nil || err.Error() != `no output "xml"; there are plain, json, json-stream, csv, html, iperf3, iperf3-json, iperf3-stream, ntttcp, ntttcp-xml, ntttcp-json, ntttcp-windows, ntttcp-windows-xml` {
		t.Error(err)
	}
	if err := render.Print(&bytes.Buffer{}, "xml", &result.Run{}, render.Options{}); err == nil {
		t.Error("no error")
	}
}
