package iperf3

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

// resultDocs returns every results document of the recordings.
func resultDocs(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	for _, r := range recordings(t) {
		for _, dir := range []string{"C>S", "S>C"} {
			_, ms := r.messages(t, dir)
			docs := 0
			for _, m := range ms {
				if m.State != 0 {
					continue
				}
				docs++
				if dir == "C>S" && docs == 1 {
					continue // the parameters
				}
				out[r.name+" "+dir] = m.Doc
			}
		}
	}
	if len(out) < 60 {
		t.Fatalf("%d results documents", len(out))
	}
	return out
}

// Our encoder gives back byte for byte what 3.21 sent.
func TestResultsRoundTrip(t *testing.T) {
	for name, doc := range resultDocs(t) {
		r, err := DecodeResults(doc)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range r.Streams {
			if s.Bytes < 0 || s.Retransmits < -1 || s.ID < 1 || s.ID == 2 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if old := strings.Contains(string(doc), "18446744073709551615") || !strings.Contains(string(doc), "omitted_errors"); old {
			continue
		}
		if got := string(r.Encode()); got != string(doc) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, doc)
		}
	}
}

func TestDecodeResults(t *testing.T) {
	full := `{"cpu_util_total":1.5,"cpu_util_user":1,"cpu_util_system":0.5,"sender_has_retransmits":18446744073709551615,` +
		`"congestion_used":"bbr","streams":[{"id":1,"bytes":6.5536e5,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,` +
		`"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.003944}]}`
	got, err := DecodeResults([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Results{
		CPU: result.CPU{Total: 1.5, User: 1, System: 0.5, Congestion: "bbr"}, HasRetransmit: -1,
		Streams: []StreamResult{{ID: 1, Bytes: 655360, Retransmits: -1, End: 1.003944, HasOmitted: true, HasTimes: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	without := func(key string) string {
		i := strings.Index(full, `"`+key+`"`)
		j := i + strings.IndexAny(full[i:], ",}]")
		if full[j] == ',' {
			j++
		} else {
			i-- // take the comma before it
		}
		return full[:i] + full[j:]
	}
	for key, fatal := range map[string]bool{
		"cpu_util_total": true, "cpu_util_user": true, "cpu_util_system": true, "sender_has_retransmits": true,
		"congestion_used": false, "id": true, "bytes": true, "retransmits": true, "jitter": true, "errors": true, "packets": true,
		"omitted_errors": true, "omitted_packets": true, "start_time": false, "end_time": false,
	} {
		_, err := DecodeResults([]byte(without(key)))
		var missing *missingError
		if fatal != errors.As(err, &missing) {
			t.Errorf("without %s: %v", key, err)
		}
	}
	for name, tc := range map[string]struct {
		doc string
		ok  bool
	}{
		"no streams":           {`{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0,"streams":[]}`, true},
		"streams missing":      {`{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0}`, false},
		"null for a number":    {strings.Replace(full, `"bytes":6.5536e5`, `"bytes":null`, 1), false},
		"string for a number":  {strings.Replace(full, `"bytes":6.5536e5`, `"bytes":"x"`, 1), false},
		"without omitted pair": {strings.Replace(strings.Replace(full, `"omitted_errors":0,`, "", 1), `"omitted_packets":0,`, "", 1), true},
		"unknown key":          {strings.Replace(full, `{"cpu`, `{"fullbore":{"x":[1,{"y":2}]},"cpu`, 1), true},
		"array":                {`[]`, false},
		"nothing":              {``, false},
		"many entries":         {`{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0,"streams":[` + strings.Repeat(`{"id":1,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0},`, 20000) + `{}]}`, false},
		"many keys":            {`{` + manyKeys(1001) + `"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0,"streams":[]}`, false},
		"a lot of keys":        {`{` + manyKeys(900) + `"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0,"streams":[]}`, true},
		"entry is a number":    {strings.Replace(full, `[{`, `[5,{`, 1), false},
	} {
		if _, err := DecodeResults([]byte(tc.doc)); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\"k%d\":0,", i)
	}
	return b.String()
}

// FuzzDecodeResults: no document crashes the decoder; what it accepted, our encoder
// writes so that it is accepted again with the same values.
func FuzzDecodeResults(f *testing.F) {
	for _, doc := range resultDocs(f) {
		f.Add(doc)
	}
	f.Add([]byte(`{"cpu_util_total":1e999,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":7,"streams":[]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := DecodeResults(doc)
		if err != nil {
			return
		}
		again, err := DecodeResults(r.Encode())
		if err != nil {
			t.Fatalf("our own document: %v", err)
		}
		if len(again.Streams) != len(r.Streams) {
			t.Fatalf("%d streams became %d", len(r.Streams), len(again.Streams))
		}
		for i := range r.Streams {
			if again.Streams[i].Bytes != r.Streams[i].Bytes || again.Streams[i].ID != r.Streams[i].ID {
				t.Fatalf("%+v became %+v", r.Streams[i], again.Streams[i])
			}
		}
	})
}
