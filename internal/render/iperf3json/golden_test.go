package iperf3json_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// TestGoldens compares with the recordings.
func TestGoldens(t *testing.T) {
	t.Parallel()
	dev := goldentest.ReadDeviations(t)
	t.Run("documents", func(t *testing.T) { documents(t, dev) })
	t.Run("streams", func(t *testing.T) { streams(t, dev) })
	dev.CheckUsed(t, true)
}

// documents decodes every recorded -J document of both releases, client and server,
// good and failed, and prints it again: byte for byte the same but for the intended
// differences.
func documents(t *testing.T, dev *goldentest.Deviations) {
	n := 0
	for _, g := range goldentest.Iperf3(t, "*.json") {
		n++
		runs, err := iperf3json.DecodeAll(g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.ID(), err)
			continue
		}
		var got []byte
		for _, r := range runs {
			got = append(got, iperf3json.Document(r, iperf3json.Options{Release: iperf3view.Release(g.Release)})...)
		}
		want, have := dev.Apply(g, string(g.Data), string(got))
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")); diff != "" {
			t.Errorf("%s (-recorded +printed):\n%s", g.ID(), diff)
		}
	}
	if n < 90 {
		t.Errorf("only %d documents", n)
	}
}

// streams decodes every recorded --json-stream output and replays it through the
// live renderer. The recording of --json-stream-full-output ends with the document.
func streams(t *testing.T, dev *goldentest.Deviations) {
	n := 0
	for _, g := range goldentest.Iperf3(t, "*.jsonl") {
		if g.Name == "errors" {
			continue
		}
		n++
		run, rest, err := iperf3json.DecodeStream(g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.ID(), err)
			continue
		}
		o := iperf3json.Options{Release: iperf3view.Release(g.Release), Full: len(rest) > 0}
		got := streamed(t, run, o)
		want, have := dev.Apply(g, string(g.Data), got)
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")); diff != "" {
			t.Errorf("%s (-recorded +printed):\n%s", g.ID(), diff)
		}
		if len(rest) == 0 {
			continue
		}
		full, err := iperf3json.Decode(rest)
		if err != nil {
			t.Errorf("%s: document: %v", g.ID(), err)
		}
		if diff := cmp.Diff(run, full); diff != "" {
			t.Errorf("%s: the document is another run than its events (-events +document):\n%s", g.ID(), diff)
		}
	}
	if n < 14 {
		t.Errorf("only %d streams", n)
	}
}

// streamed replays r through a Stream.
func streamed(t *testing.T, r *result.Run, o iperf3json.Options) string {
	t.Helper()
	var b bytes.Buffer
	s := iperf3json.NewStream(&b, o)
	for _, e := range result.Unfold(r) {
		s.Event(e)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return b.String()
}
