package csv_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	made "github.com/fullbore-net/fullbore/internal/conclude/sample"
)

func TestProbes(t *testing.T) {
	run := made.Probes()
	var figures []string
	for _, row := range table(t, print(t, run)) {
		if row["record"] != "probes" || row["run"] != run.ID || row["end"] != "client" || row["probe"] != "udp-echo" {
			t.Errorf("row %v", row)
		}
		figures = append(figures, row["figure"]+" "+row["direction"])
		switch row["figure"] + " " + row["direction"] {
		case "counts ":
			want := map[string]string{
				"record": "probes", "run": run.ID, "end": "client", "probe": "udp-echo", "figure": "counts", "sent": "500", "answered": "497", "lost_up": "2", "lost_down": "1",
			}
			if diff := cmp.Diff(want, row); diff != "" {
				t.Error(diff)
			}
		case "delay up":
			want := map[string]string{
				"record": "probes", "run": run.ID, "end": "client", "probe": "udp-echo", "figure": "delay", "direction": "up", "n": "497", "min_s": "0.000880000", "mean_s": "0.001210000",
				"p50_s": "0.001100000", "p95_s": "0.001364000", "p99_s": "0.001628000", "p99_9_s": "0.001892000", "max_s": "0.001980000", "bound_s": "0.000600000",
			}
			if diff := cmp.Diff(want, row); diff != "" {
				t.Error(diff)
			}
		}
	}
	want := []string{"counts ", "round_trip ", "delay up", "pdv up", "ipdv up", "delay down", "pdv down", "ipdv down"}
	if diff := cmp.Diff(want, figures); diff != "" {
		t.Error(diff)
	}
	rows := table(t, print(t, made.Pings()))
	if len(rows) != 4 || rows[2]["rr_per_second"] != "2500.4" || rows[1]["figure"] != "connect" || rows[3]["n"] != "25000" {
		t.Errorf("%v", rows)
	}
}
