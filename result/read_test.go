package result_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

func TestReadReport(t *testing.T) {
	want := &result.Report{Schema: result.Schema, Kind: "diagnose", Summary: "ok", Inputs: []string{"h"}}
	plain, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": plain, "packed": packed.Bytes()} {
		got, err := result.ReadReport(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("x"), "cut": packed.Bytes()[:packed.Len()-9], "header": {0x1f, 0x8b}} {
		if _, err := result.ReadReport(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
