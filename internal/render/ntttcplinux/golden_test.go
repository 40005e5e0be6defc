package ntttcplinux_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/result"
)

// print prints the recording's console and log again; replay: not from the events, but
// from their fold.
func (r *recording) print(t *testing.T, replay bool) (console, log string) {
	t.Helper()
	var out, logged strings.Builder
	for i, one := range r.tests {
		o := r.o
		o.Again, o.Zone, o.End = i > 0, time.UTC, r.end
		o.Now = func() time.Time { return one.stamp }
		o.Log = &logged
		events := one.events
		if replay {
			events = result.Unfold(result.Fold(events))
		}
		w := ntttcplinux.New(&out, o)
		for _, e := range events {
			w.Event(e)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	return out.String(), logged.String()
}

// TestGoldens reads every recording of both roles into runs, prints them live and
// replayed, and compares every byte of console, log, XML and JSON.
func TestGoldens(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	files := 0
	for _, c := range commands(t) {
		t.Run(c.name, func(t *testing.T) {
			r := read(t, c)
			compare := func(ext, want, got string) {
				files++
				g := goldentest.Golden{Release: "ntttcp-linux", Name: c.name, Ext: ext}
				want, got = dev.Apply(g, want, got)
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Errorf("%s (-recorded +printed):\n%s", ext, diff)
				}
			}
			live, log := r.print(t, false)
			compare("txt", r.text, live)
			replayed, _ := r.print(t, true)
			if diff := cmp.Diff(live, replayed); diff != "" {
				t.Errorf("(-live +replayed):\n%s", diff)
			}
			if r.log != "" {
				compare("log", r.log, log)
			}
			last := result.Fold(r.tests[len(r.tests)-1].events)
			if r.xml != "" {
				var b bytes.Buffer
				if err := ntttcplinux.WriteXML(&b, last, r.o); err != nil {
					t.Error(err)
				}
				compare("xml", r.xml, b.String())
			}
			if r.json != "" {
				var b bytes.Buffer
				if err := ntttcplinux.WriteJSON(&b, last, r.o); err != nil {
					t.Error(err)
				}
				compare("json", r.json, b.String())
			}
		})
	}
	if all := len(goldentest.NTTTCP(t, "[0-9]*")); files != all {
		t.Errorf("%d of %d recorded files compared", files, all)
	}
	dev.CheckUsed(t, false)
}

// documents are a run's XML and JSON in each layout, with names that need escaping.
func documents(t *testing.T) (xmls, jsons map[string][]byte) {
	t.Helper()
	xmls, jsons = map[string][]byte{}, map[string][]byte{}
	for _, c := range commands(t) {
		r := read(t, c)
		run := result.Fold(r.tests[0].events)
		if !run.Finished() {
			continue
		}
		for _, release := range []ntttcplinux.Release{ntttcplinux.R134, ntttcplinux.R140Tag, ntttcplinux.R140, ntttcplinux.R143} {
			o := r.o
			o.Release, o.Verbose = release, true
			o.Settings.Computer, o.Settings.System = "a&b<c>\"d\"", "Linux <x> \\ \"y\" & \x01\xff z"
			var x, j bytes.Buffer
			if err := errors.Join(ntttcplinux.WriteXML(&x, run, o), ntttcplinux.WriteJSON(&j, run, o)); err != nil {
				t.Error(err)
			}
			xmls[c.name+"-"+string(release)], jsons[c.name+"-"+string(release)] = x.Bytes(), j.Bytes()
		}
	}
	return xmls, jsons
}

// TestDocumentsAreWellFormed: every document parses, also with names that the original
// would not have escaped.
func TestDocumentsAreWellFormed(t *testing.T) {
	t.Parallel()
	xmls, jsons := documents(t)
	if len(xmls) < 100 {
		t.Errorf("only %d documents", len(xmls))
	}
	for name, doc := range xmls {
		d := xml.NewDecoder(bytes.NewReader(doc))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := tok.(xml.StartElement); ok && strings.HasPrefix(e.Name.Local, "ntttcp") && e.Attr[0].Value != `a&b<c>"d"` {
				t.Errorf("%s: %v", name, e.Attr)
			}
		}
	}
	for name, doc := range jsons {
		var v map[string]map[string]any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, inner := range v {
			if inner["computername"] != `a&b<c>"d"` {
				t.Errorf("%s: %v", name, inner["computername"])
			}
		}
	}
}

// TestXMLLint has the documents read by xmllint.
func TestXMLLint(t *testing.T) {
	t.Parallel()
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("xmllint is missing: test/peers.sh installs it")
		}
		t.Skip("xmllint is not installed (test/peers.sh installs it)")
	}
	xmls, _ := documents(t)
	dir := t.TempDir()
	args := []string{"--noout"}
	for name, doc := range xmls {
		file := dir + "/" + name + ".xml"
		if err := os.WriteFile(file, doc, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	if out, err := exec.Command(lint, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
