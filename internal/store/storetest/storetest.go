// Package storetest holds the promises of store.Store as one test, which every implementation
// runs.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/result"
)

// Epoch is the start of the first made-up run.
var Epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Run is a made-up run: the n-th, one a minute.
func Run(n int) *result.Run {
	at := Epoch.Add(time.Duration(n) * time.Minute)
	rate := float64(n+1) * 1e9
	bytes := int64(rate / 8 * 10)
	total := &result.Total{End: 10, Bytes: bytes}
	return &result.Run{
		Schema: result.Schema, ID: ID(n), Tool: result.Tool{Name: "fullbore", Version: "test"}, End: result.Client, Protocol: "iperf3", Started: at,
		Test:    result.Test{Transport: "tcp", Direction: "up", Streams: 1, Duration: 10, Target: "host-a", BlockSize: 131072, Interval: 1},
		Streams: []result.Stream{{ID: 1, Socket: 5, Direction: result.Up, Sender: total, Receiver: total}},
		Rows:    []result.Interval{},
		Sums:    []result.Sum{{Direction: result.Up, Sender: total, Receiver: total, Goodput: &rate}},
		Notices: []result.Notice{},
		Summary: fmt.Sprintf("run %d", n),
	}
}

// ID is the identifier of the n-th made-up run: equal beginnings, as in one second.
func ID(n int) string { return fmt.Sprintf("01KB%022d", n) }

// Report is a made-up report over two runs.
func Report(n int) *result.Report {
	a, b := Run(n), Run(n+1)
	b.Test.Direction, b.Sums[0].Direction = "down", result.Down
	return &result.Report{
		Schema: result.Schema, ID: strings.Replace(ID(n), "01KB", "01RR", 1), Kind: "test", Tool: a.Tool, Started: a.Started, Inputs: []string{"host-a"},
		Runs: []*result.Run{a, b}, Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{}, Summary: "both",
	}
}

// Test runs all promises. open opens the store at a place; the same place twice is the same store.
func Test(t *testing.T, open func(t *testing.T, place string) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, func() store.Store)
	}{
		{"what goes in comes out", roundTrip},
		{"filters", filters},
		{"find", find},
		{"note and tag", change},
		{"prune", prune},
		{"many writers", writers},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := t.TempDir()
			c.test(t, func() store.Store {
				s := open(t, place)
				t.Cleanup(func() { _ = s.Close() })
				return s
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func roundTrip(t *testing.T, open func() store.Store) {
	ctx := t.Context()
	s := open()
	e := store.OfRun(Run(1))
	e.Original = []byte("the file\x00\xff")
	must(t, s.Add(ctx, e))
	must(t, s.Add(ctx, store.Of(Report(2))))
	if err := s.Add(ctx, e); !errors.Is(err, store.ErrExists) {
		t.Errorf("adding it twice: %v", err)
	}
	must(t, s.Close())
	s = open()
	got, err := s.Get(ctx, e.Record.ID)
	must(t, err)
	if diff := cmp.Diff(Run(1), got.Run); diff != "" {
		t.Errorf("run:\n%s", diff)
	}
	if string(got.Original) != string(e.Original) {
		t.Errorf("original: %q", got.Original)
	}
	if got.Record.Bytes <= 0 {
		t.Error("its size is not known")
	}
	want := e.Record
	want.Bytes = got.Record.Bytes
	if diff := cmp.Diff(want, got.Record); diff != "" {
		t.Errorf("record:\n%s", diff)
	}
	got, err = s.Get(ctx, Report(2).ID)
	must(t, err)
	if diff := cmp.Diff(Report(2), got.Report); diff != "" {
		t.Errorf("report:\n%s", diff)
	}
	if _, err := s.Get(ctx, "01NOTTHERE"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
}

func ids(records []store.Record) string {
	var out []string
	for _, r := range records {
		out = append(out, r.ID[len(r.ID)-1:])
	}
	return strings.Join(out, "")
}

func filters(t *testing.T, open func() store.Store) {
	ctx := t.Context()
	s := open()
	for n := range 6 {
		r := Run(n)
		e := store.OfRun(r)
		e.Record.Host = []string{"host-a", "host-b"}[n%2]
		e.Record.Label = []string{"", "", "up'link"}[n%3]
		if n == 4 {
			e.Record.Tags = []string{"night", "x"}
		}
		if n == 5 {
			e.Record.Kind = "delay"
		}
		must(t, s.Add(ctx, e))
	}
	for _, c := range []struct {
		name string
		f    store.Filter
		want string
	}{
		{"all, oldest first", store.Filter{}, "012345"},
		{"host", store.Filter{Host: "host-b"}, "135"},
		{"label", store.Filter{Label: "up'link"}, "25"},
		{"kind", store.Filter{Kind: "delay"}, "5"},
		{"one tag", store.Filter{Tags: []string{"night"}}, "4"},
		{"two tags", store.Filter{Tags: []string{"x", "night"}}, "4"},
		{"a tag that is not there", store.Filter{Tags: []string{"x", "day"}}, ""},
		{"since", store.Filter{Since: Epoch.Add(3 * time.Minute)}, "345"},
		{"until", store.Filter{Until: Epoch.Add(3 * time.Minute)}, "012"},
		{"the newest two", store.Filter{Limit: 2}, "45"},
		{"settings", store.Filter{Settings: store.OfRun(Run(0)).Record.Settings, Host: "host-a"}, "024"},
		{"quote", store.Filter{Label: "' OR 1=1 --"}, ""},
	} {
		got, err := s.List(ctx, c.f)
		must(t, err)
		if ids(got) != c.want {
			t.Errorf("%s: %q, want %q", c.name, ids(got), c.want)
		}
	}
}

func find(t *testing.T, open func() store.Store) {
	ctx := t.Context()
	s := open()
	if _, err := s.Find(ctx, "last"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("last of nothing: %v", err)
	}
	must(t, s.Add(ctx, store.OfRun(Run(1))))
	must(t, s.Add(ctx, store.OfRun(Run(2))))
	must(t, s.Add(ctx, store.Of(Report(7))))
	report := Report(7).ID
	for word, want := range map[string]string{
		ID(1): ID(1), strings.ToLower(ID(2)): ID(2), "last": report, "last~0": report, "last~1": ID(2), "01rr": report,
		ID(8): report, // a run of the report
	} {
		if got, err := s.Find(ctx, word); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", word, got, err, want)
		}
	}
	for word, want := range map[string]error{
		"01KB": store.ErrAmbiguous, "01ZZ": store.ErrNotFound, "last~9": store.ErrNotFound, "last~x": store.ErrNotFound, "": store.ErrNotFound,
		"0": store.ErrNotFound, "01K%": store.ErrNotFound, "01K_": store.ErrNotFound,
	} {
		if got, err := s.Find(ctx, word); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v; want %v", word, got, err, want)
		}
	}
}

func change(t *testing.T, open func() store.Store) {
	ctx := t.Context()
	s := open()
	must(t, s.Add(ctx, store.OfRun(Run(1))))
	must(t, s.Note(ctx, ID(1), "a new cable; 'quoted'"))
	must(t, s.Tag(ctx, ID(1), []string{"b", "a", "b"}, nil))
	must(t, s.Tag(ctx, ID(1), []string{"c"}, []string{"a", "nothing"}))
	e, err := s.Get(ctx, ID(1))
	must(t, err)
	if e.Record.Note != "a new cable; 'quoted'" || e.Run.Note != e.Record.Note || strings.Join(e.Record.Tags, " ") != "b c" {
		t.Errorf("note %q %q, tags %v", e.Record.Note, e.Run.Note, e.Record.Tags)
	}
	if got, err := s.List(ctx, store.Filter{Tags: []string{"a"}}); err != nil || len(got) != 0 {
		t.Errorf("a tag that was removed finds %v, %v", got, err)
	}
	if err := s.Note(ctx, "01NOTTHERE", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("note on what is not there: %v", err)
	}
	if err := s.Tag(ctx, "01NOTTHERE", []string{"x"}, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("tag on what is not there: %v", err)
	}
}

func prune(t *testing.T, open func() store.Store) {
	ctx := t.Context()
	s := open()
	var each int64
	for n := range 8 {
		e := store.OfRun(Run(n))
		if n == 1 {
			e.Record.Tags = []string{store.KeepTag}
		}
		// A document that does not compress, so that the file's size says something.
		e.Original = noise(64<<10, uint64(n))
		must(t, s.Add(ctx, e))
	}
	all, err := s.List(ctx, store.Filter{})
	must(t, err)
	each = all[7].Bytes
	full, err := s.Size(ctx)
	must(t, err)
	left := func() string {
		t.Helper()
		got, err := s.List(ctx, store.Filter{})
		must(t, err)
		return ids(got)
	}
	p, err := s.Prune(ctx, store.Bounds{Keep: 2, DryRun: true})
	must(t, err)
	if p.Runs != 5 || left() != "01234567" {
		t.Errorf("dry run: %+v, left %s", p, left())
	}
	p, err = s.Prune(ctx, store.Bounds{Before: Epoch.Add(2 * time.Minute)})
	must(t, err)
	if p.Runs != 1 || left() != "1234567" {
		t.Errorf("older: %+v, left %s", p, left())
	}
	p, err = s.Prune(ctx, store.Bounds{Keep: 4})
	must(t, err)
	if p.Runs != 2 || left() != "14567" {
		t.Errorf("keep 4: %+v, left %s", p, left())
	}
	p, err = s.Prune(ctx, store.Bounds{MaxSize: 2*each + each/2})
	must(t, err)
	if p.Runs != 2 || left() != "167" || p.Bytes < each {
		t.Errorf("max size: %+v, left %s", p, left())
	}
	after, err := s.Size(ctx)
	must(t, err)
	if after.Runs != 3 || after.Protected < each/2 || after.Protected >= 2*each || after.Bytes >= full.Bytes/2 || after.FileBytes >= full.FileBytes/2 {
		t.Errorf("space is not given back: %+v, then %+v", full, after)
	}
	if _, err := s.Get(ctx, ID(6)); err != nil {
		t.Errorf("one that stayed: %v", err)
	}
}

// noise is n bytes that do not compress.
func noise(n int, seed uint64) []byte {
	out := make([]byte, n)
	x := seed*2654435761 + 88172645463325252
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x >> 32)
	}
	return out
}

// writers: several stores on one place, as several processes have them; also the first opening
// is at once.
func writers(t *testing.T, open func() store.Store) {
	const stores, each = 4, 5
	var wg sync.WaitGroup
	errs := make(chan error, stores)
	all := make([]store.Store, stores)
	for i := range all {
		wg.Go(func() { all[i] = open() })
	}
	wg.Wait()
	for i, s := range all {
		wg.Go(func() {
			for n := range each {
				if err := s.Add(context.Background(), store.OfRun(Run(i*each+n))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got, err := all[0].List(t.Context(), store.Filter{}); err != nil || len(got) != stores*each {
		t.Errorf("%d runs, %v; want %d", len(got), err, stores*each)
	}
}
