package csv_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/conclude"
	made "github.com/fullbore-net/fullbore/internal/conclude/sample"
	render "github.com/fullbore-net/fullbore/internal/render/csv"
	"github.com/fullbore-net/fullbore/result"
)

// TestUDP: the account of both ends has its columns, and a run that is printed as it
// happens is the one that is printed from a store.
func TestUDP(t *testing.T) {
	t.Parallel()
	test := made.NewUDP()
	test.Rates, test.LossShare, test.MSS = made.Flat(100e6, 2), 0.01, 1400
	test.Account = func(_ result.Direction, u *result.UDPStream) {
		drops, rest := u.Loss.Lost-1, int64(1)
		u.Loss.Socket, u.Loss.Network = &drops, &rest
		u.Received.Duplicates, u.Sent.Unsent = 3, 4
	}
	events := test.Events()
	run := result.Fold(events)
	conclude.Conclude(run)
	rows := table(t, print(t, run))
	find := func(record, role, stream string) map[string]string {
		for _, r := range rows {
			if r["record"] == record && r["role"] == role && r["stream"] == stream {
				return r
			}
		}
		t.Fatalf("no %s %s %s", record, role, stream)
		return nil
	}
	pick := func(r map[string]string, columns ...string) map[string]string {
		out := map[string]string{}
		for _, c := range columns {
			if v, ok := r[c]; ok {
				out[c] = v
			}
		}
		return out
	}
	for _, c := range []struct {
		record, role, stream string
		want                 map[string]string
	}{
		{"interval", "receiver", "1", map[string]string{"duplicates": "0", "pdv_p50_s": "0.000020000", "pdv_p99_s": "0.000080000", "out_of_order": "0"}},
		{"interval", "sender", "1", map[string]string{"late_p99_s": "0.000016000", "unsent": "0", "refused": "0"}},
		{"interval", "receiver", "sum", map[string]string{"out_of_order": "0"}},
		{"total", "receiver", "sum", map[string]string{
			"duplicates": "3", "lost_of_sent": "180", "lost_socket": "179", "lost_network": "1", "attribution": "exact", "distinct": "17865",
			"pdv_p50_s": "0.000020000", "pdv_p99_s": "0.000080000", "out_of_order": "0",
		}},
		{"total", "sender", "1", map[string]string{"unsent": "4", "refused": "0", "largest_burst": "2", "late_p99_s": "0.000016000"}},
	} {
		columns := []string{
			"duplicates", "pdv_p50_s", "pdv_p99_s", "late_p99_s", "unsent", "refused", "largest_burst", "lost_of_sent", "lost_socket",
			"lost_network", "attribution", "distinct", "out_of_order",
		}
		if diff := cmp.Diff(c.want, pick(find(c.record, c.role, c.stream), columns...)); diff != "" {
			t.Errorf("%s %s %s -want +got:\n%s", c.record, c.role, c.stream, diff)
		}
	}
	sum := find("total", "receiver", "sum")
	for _, c := range []string{"loss_ratio", "loss_low_95", "loss_high_95", "l1_bits_per_second"} {
		if sum[c] == "" {
			t.Errorf("%s is empty", c)
		}
	}
	var live bytes.Buffer
	w := render.New(&live)
	for _, e := range events {
		w.Event(e)
	}
	w.Finish(run)
	if diff := cmp.Diff(table(t, live.String()), rows); diff != "" {
		t.Errorf("-live +replayed:\n%s", diff)
	}
}
