package html_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/internal/render/html"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

var (
	update = flag.Bool("update", false, "write the golden pages anew, from their documents")
	judge  = flag.Bool("judge", false, "make the golden pages' documents anew, from the recordings as they are judged today")
)

const recordings = "../../diagnose/testdata/runs"

func read(t testing.TB, file string) *result.Report {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	rep, err := result.ReadReport(f)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func page(t testing.TB, rep *result.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.WriteReport(&b, rep); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// acceptedAgain judges the recorded acceptance anew, by the suite that it was made with.
func acceptedAgain(t *testing.T, rep *result.Report) *result.Report {
	t.Helper()
	a := rep.Acceptance
	s := suite.Default(suite.Class(a.Class), units.BitRate(a.Link))
	s.Override(2, 0, "")
	s, err := s.Shortened().Only([]string{"A1", "A2", "A3", "A4", "A5", "A6"})
	if err != nil {
		t.Fatal(err)
	}
	rep.Items, rep.Unseen = nil, nil
	(&suite.Judge{
		Method: suite.Method{Suite: s, Path: suite.Path{Family: 4, MTU: a.MTU}}, Host: "10.77.0.2", Self: a.Self, Facts: a.Facts, LinkFrom: suite.LinkGiven,
	}).Fill(rep, suite.History(rep))
	return rep
}

// golden pages are of these recordings. Their documents are kept as they were judged then, so
// that a page changes when the renderer does, and not with each word of a rule.
var golden = []string{"diagnose-window-server", "diagnose-loss-bursty", "diagnose-plain-clean", "accept-foreign"}

func TestGolden(t *testing.T) {
	for _, name := range golden {
		doc, file := filepath.Join("testdata", name+".json.gz"), filepath.Join("testdata", name+".html")
		if *judge {
			var rep *result.Report
			if strings.HasPrefix(name, "diagnose-") {
				rep = read(t, filepath.Join(recordings, name+".json.gz"))
				diagnose.Fill(rep, diagnose.History(rep), rep.Facts)
			} else {
				rep = acceptedAgain(t, read(t, doc))
			}
			rep.Tool.Version = "1.0.0"
			data, err := json.Marshal(rep)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
			_, werr := z.Write(data)
			if err := errors.Join(werr, z.Close(), os.WriteFile(doc, b.Bytes(), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		got := page(t, read(t, doc))
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			if len(diff) > 4000 {
				diff = diff[:4000] + "…"
			}
			t.Errorf("%s (-want +got; look at it in a browser, then -update):\n%s", name, diff)
		}
	}
}

// sound holds of every page: elements close, ids are there once, links within it lead
// somewhere, nothing is loaded from anywhere, no value is an accident of formatting.
func sound(t *testing.T, name, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "link"}, xml.HTMLEntity
	ids, refs := map[string]int{}, []string{}
	var open []string
	for {
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "script", "iframe", "object", "embed", "img":
				t.Errorf("%s: <%s> in it", name, e.Name.Local)
			case "meta", "link":
				continue
			}
			open = append(open, e.Name.Local)
			for _, a := range e.Attr {
				switch {
				case a.Name.Local == "id":
					ids[a.Value]++
				case a.Name.Local == "href" && strings.HasPrefix(a.Value, "#"):
					refs = append(refs, a.Value[1:])
				case a.Name.Local == "aria-labelledby" || a.Name.Local == "aria-describedby":
					refs = append(refs, a.Value)
				case a.Name.Local == "href" || a.Name.Local == "src" || strings.HasPrefix(a.Name.Local, "on"):
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("%s: </%s> closes %v", name, e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: not closed: %v", name, open)
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: id %s is there %d times", name, id, n)
		}
	}
	for _, r := range refs {
		if ids[r] == 0 {
			t.Errorf("%s: nothing has the id %s", name, r)
		}
	}
	if at := accident.FindString(s); at != "" {
		t.Errorf("%s: %q in it", name, at)
	}
	if len(s) > 1<<20 {
		t.Errorf("%s: %d bytes", name, len(s))
	}
}

var accident = regexp.MustCompile(`.{0,40}(NaN|[+-]Inf|%!|<nil>|ZgotmplZ|url\(|@import).{0,40}`)

// TestRecordings makes a page of every fourth recorded diagnosis: judging each stage of all of them
// takes minutes under the race detector, and package diagnose does it.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(recordings + "/*.json.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for i, f := range files {
		if i%4 != 0 {
			continue
		}
		rep := read(t, f)
		diagnose.Fill(rep, diagnose.History(rep), rep.Facts)
		s := page(t, rep)
		name := filepath.Base(f)
		sound(t, name, s)
		for _, want := range []string{"What to do", "How it was reasoned", "Stage by stage", "Both ends", "What could not be seen", "prefers-color-scheme", `id="fb-cpu-t"`} {
			if !strings.Contains(s, want) && (want != "What to do" || hasAdvice(rep)) && (want != "What could not be seen" || len(rep.Unseen) > 0) {
				t.Errorf("%s: no %q in it", name, want)
			}
		}
		for _, v := range rep.Verdicts {
			if !strings.Contains(s, "<code>"+v.Code+"</code>") && !strings.Contains(s, strings.ReplaceAll(v.Code, "-", " ")) {
				t.Errorf("%s: verdict %s is not told", name, v.Code)
			}
		}
		if page(t, rep) != s {
			t.Errorf("%s: not the same twice", name)
		}
	}
}

func hasAdvice(rep *result.Report) bool {
	for _, v := range rep.Verdicts {
		if len(v.Advice) > 0 {
			return true
		}
	}
	return false
}

// TestHostile puts markup into everything that a peer, a user or a file can name.
func TestHostile(t *testing.T) {
	const evil = `</title></style><script>alert(1)</script><img src=x onerror=alert(2)>"'><b>&{{.}}` + "\x00\x1b[31m\u202e\xff"
	rep := read(t, filepath.Join("testdata", golden[0]+".json.gz"))
	rep.Inputs, rep.Summary, rep.Kind, rep.Unseen = []string{evil}, evil, evil, []string{evil}
	rep.Tool = result.Tool{Name: evil, Version: evil}
	rep.Err = &result.Error{Text: evil}
	rep.Notices = []result.Notice{{Code: evil, Text: evil, Fix: evil, Level: result.Warn}}
	rep.Items = []result.Item{{ID: evil, Result: evil, Reasons: []string{evil}}}
	rep.Facts.Congestion, rep.Facts.Governor = evil, evil
	for i := range rep.Verdicts {
		v := &rep.Verdicts[i]
		v.Code, v.Certainty, v.Summary, v.Direction = evil, evil, evil, evil
		v.Evidence, v.Advice = []string{evil, "changed: " + evil}, []string{evil, "on " + evil + " (Linux): " + evil, "fullbore test " + evil}
		v.Values = []result.Value{{Name: evil, Unit: evil, Value: 1}}
	}
	for i := range rep.Stages {
		s := &rep.Stages[i]
		s.Title, s.Why, s.Showed, s.RuledIn, s.RuledOut, s.Err = evil, evil, evil, []string{evil}, []string{evil}, &result.Error{Text: evil}
	}
	for _, r := range rep.Runs {
		r.Summary, r.Label, r.Test.Target = evil, evil, evil
		for _, h := range []*result.Host{r.Hosts.Client, r.Hosts.Server} {
			if h == nil {
				continue
			}
			h.Name, h.OS, h.Release, h.CPUModel, h.Virtual, h.Clock = evil, evil, evil, evil, evil, evil
			h.NIC = &result.NIC{Name: evil, Driver: evil, Firmware: evil, Model: evil, Duplex: evil}
		}
		for i := range r.Streams {
			r.Streams[i].Local.Host, r.Streams[i].Remote.Host = evil, evil
		}
		for i := range r.Sums {
			r.Sums[i].From, r.Sums[i].To, r.Sums[i].Limit = evil, evil, evil
		}
	}
	rep.Curve = []result.Point{{X: 1, Y: 2, Label: evil}, {X: 2, Y: 3, Label: evil}}
	s := page(t, rep)
	sound(t, "hostile", s)
	for _, bad := range []string{"<script", "<img", "\x00", "\x1b", "\u202e", "\xff"} {
		if strings.Contains(s, bad) {
			t.Errorf("%q came through", bad)
		}
	}
	if !strings.Contains(s, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the text itself is not shown")
	}
}

// TestOneRun: a test's run, and reports with next to nothing in them.
func TestOneRun(t *testing.T) {
	rep := read(t, filepath.Join("testdata", golden[1]+".json.gz"))
	for i, r := range rep.Runs {
		var b bytes.Buffer
		if err := html.Write(&b, r); err != nil {
			t.Fatal(err)
		}
		sound(t, rep.Stages[i].Name, b.String())
	}
	for name, rep := range map[string]*result.Report{
		"empty":   {},
		"stages":  {Kind: "diagnose", Stages: []result.Stage{{Name: "idle", Title: "the empty path", Err: &result.Error{Text: "no route"}}}, Err: &result.Error{Text: "no route"}},
		"bad run": {Kind: "diagnose", Stages: []result.Stage{{Name: "up-1", Run: new(int)}}},
		"run":     {Kind: "test", Runs: []*result.Run{{}}},
	} {
		s := page(t, rep)
		sound(t, name, s)
		if !strings.Contains(s, "Nothing was measured.") {
			t.Errorf("%s: it does not say that nothing was measured", name)
		}
	}
}

// TestLongRun: an hour of reports each 100 ms, of 128 cores, are thinned to a page of less
// than 1 MiB, and the one bad interval is still told.
func TestLongRun(t *testing.T) {
	run := &result.Run{Schema: result.Schema, Started: time.Unix(0, 0), End: result.Client, Test: result.Test{Transport: "tcp", Direction: "up", Streams: 1}, Summary: "Long."}
	for i := range 36000 {
		bps, again := 9e8+1e6*float64(i%13), int64(0)
		if i == 20001 {
			bps, again = 1.5e6, 4711
		}
		row := result.Interval{
			End: result.Client, Index: i, Start: float64(i) / 10, Stop: float64(i+1) / 10,
			Sums: []result.IntervalSum{{Direction: result.Up, Sender: true, Start: float64(i) / 10, Stop: float64(i+1) / 10, BPS: bps, Retransmits: &again}},
		}
		if i%50 == 0 {
			row.Host = &result.HostSample{}
		}
		for c := range 128 {
			if row.Host == nil {
				break
			}
			row.Host.Cores = append(row.Host.Cores, result.CoreShare{CPU: c, User: float64((i*7+c*13)%100) / 100, Idle: 1 - float64((i*7+c*13)%100)/100})
		}
		run.Rows = append(run.Rows, row)
	}
	var b bytes.Buffer
	if err := html.Write(&b, run); err != nil {
		t.Fatal(err)
	}
	sound(t, "long", b.String())
	for _, want := range []string{"1.5 Mbit/s", "4 711 sent again", "of 128 cores"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestFullDisk(t *testing.T) {
	if err := html.WriteReport(full{}, &result.Report{}); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v", err)
	}
}
