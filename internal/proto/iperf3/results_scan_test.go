package iperf3

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What scanNumbers takes, decodeObject reads the same.
func TestScanNumbersIsDecodeObject(t *testing.T) {
	names := []string{
		"id", "bytes", "retransmits", "jitter", "errors", "omitted_errors", "packets", "omitted_packets",
		"start_time", "end_time", "ID", "other", `by\u0074es`, "", "fullbore",
	}
	values := []string{
		"0", "-1", "18446744073709551615", "0.25", "1e3", "-0.0", "null", "true", `""`, `"1,\"bytes\":2"`, `"}"`,
		"{}", `{"bytes":3}`, "[1,2]", `[{"id":1}]`,
	}
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t"})
		var b strings.Builder
		fmt.Fprintf(&b, "%s{", space.Draw(t, "space"))
		for i := range rapid.IntRange(0, 12).Draw(t, "keys") {
			if i > 0 {
				b.WriteByte(',')
			}
			value := rapid.SampledFrom(values[:6])
			if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				value = rapid.SampledFrom(values)
			}
			name := rapid.SampledFrom(names[:10])
			if rapid.IntRange(0, 19).Draw(t, "odd name") == 0 {
				name = rapid.SampledFrom(names)
			}
			fmt.Fprintf(&b, "%s\"%s\"%s:%s%s", space.Draw(t, "space"), name.Draw(t, "name"), space.Draw(t, "space"), value.Draw(t, "value"), space.Draw(t, "space"))
		}
		fmt.Fprintf(&b, "%s}", space.Draw(t, "space"))
		doc := []byte(b.String())
		if !json.Valid(doc) {
			t.Fatalf("the test made no JSON: %s", doc)
		}
		fast := object{}
		if !scanNumbers(doc, fast) {
			return
		}
		slow, err := decodeObject(doc)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if len(fast) != len(slow) {
			t.Fatalf("%s: %d keys, want %d", doc, len(fast), len(slow))
		}
		for k, v := range slow {
			if string(fast[k]) != string(v) {
				t.Errorf("%s: %s is %s, want %s", doc, k, fast[k], v)
			}
		}
	})
}

// Thousands of entries cost no garbage of their own.
func TestDecodeStreamsAllocatesLittle(t *testing.T) {
	var r Results
	for i := range 1000 {
		r.Streams = append(r.Streams, StreamResult{ID: i + 1, Bytes: 1 << 40, Retransmits: -1, End: 10.5})
	}
	doc := r.Encode()
	if got, err := DecodeResults(doc); err != nil || len(got.Streams) != 1000 || got.Streams[999] != (StreamResult{
		ID: 1000, Bytes: 1 << 40, Retransmits: -1, End: 10.5, HasOmitted: true, HasTimes: true,
	}) {
		t.Fatalf("%+v, %v", got.Streams[999], err)
	}
	n := testing.AllocsPerRun(5, func() {
		if _, err := DecodeResults(doc); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2500 {
		t.Errorf("%v allocations for 1000 entries", n)
	}
	if n := testing.AllocsPerRun(5, func() { r.Encode() }); n > 100 && !raceDetector {
		t.Errorf("%v allocations to encode 1000 entries", n)
	}
}
