package jsonstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/result"
)

// writes keeps each Write apart.
type writes struct {
	lines []string
	err   error
}

func (w *writes) Write(p []byte) (int, error) {
	w.lines = append(w.lines, string(p))
	return len(p), w.err
}

// TestLines: an event is one line and one Write, and reads back as itself.
func TestLines(t *testing.T) {
	t.Parallel()
	run, err := iperf3json.Decode(goldentest.One(t, "3.21", "tcp_bidir_P2_json.client.json").Data)
	if err != nil {
		t.Fatal(err)
	}
	run.Label = "<a & b>\nc"
	w := &writes{}
	r := jsonstream.New(w)
	events := result.Unfold(run)
	for i, e := range events {
		r.Event(e)
		if len(w.lines) != i+1 || strings.Count(w.lines[i], "\n") != 1 || !strings.HasSuffix(w.lines[i], "\n") {
			t.Fatalf("after %d events: %q", i+1, w.lines)
		}
		var back result.Event
		if err := json.Unmarshal([]byte(w.lines[i]), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Errorf("%s: %s", e.Kind, diff)
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.lines[0], `"label":"<a & b>\nc"`) {
		t.Error(w.lines[0])
	}
}

// TestError: after the first error nothing is written.
func TestError(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	w := &writes{err: full}
	r := jsonstream.New(w)
	r.Event(result.Event{Kind: result.KindStart})
	r.Event(result.Event{Kind: result.KindStart})
	if !errors.Is(r.Err(), full) || len(w.lines) != 1 {
		t.Errorf("%v after %d writes", r.Err(), len(w.lines))
	}
	var b bytes.Buffer
	r = jsonstream.New(&b)
	r.Event(result.Event{Kind: result.KindInterval, T: math.Inf(1)})
	if r.Err() == nil || b.Len() > 0 {
		t.Errorf("%v %q", r.Err(), b.String())
	}
}
