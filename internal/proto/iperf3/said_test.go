package iperf3

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// Both ends name the limit and what was asked for (field case F53), the client also when
// nothing but the hello before the error can tell it.
func TestLimitsAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		policy plan.Serve
		p      plan.Plan
		words  []string
	}{
		"rate":         {plan.Serve{RateLimit: 1e6}, plan.Plan{Bitrate: 2.5e6, Streams: 2}, []string{"1000000 bit/s", "5000000 bit/s"}},
		"rate, both":   {plan.Serve{RateLimit: 1e6}, plan.Plan{Bitrate: 2.5e6, Direction: plan.Both}, []string{"1000000 bit/s", "5000000 bit/s"}},
		"lower of two": {plan.Serve{RateLimit: 2e6, MaxRate: 1e6}, plan.Plan{FQRate: 5e6}, []string{"1000000 bit/s", "5000000 bit/s"}},
		"time":         {plan.Serve{MaxDuration: 5 * time.Second}, plan.Plan{Duration: 18 * time.Second, Omit: 2 * time.Second}, []string{"5s", "20s"}},
	} {
		ts := startServer(t, &Server{Policy: c.policy})
		_, err := runClient(t, ts.client(c.p))
		if err == nil {
			t.Fatalf("%s: not refused", name)
		}
		eventually(t, "the server gives no reason", func() bool { return ts.run(0).Err != nil })
		for who, text := range map[string]string{"client": err.Error(), "server": ts.run(0).Err.Text} {
			for _, w := range c.words {
				if !strings.Contains(text, w) {
					t.Errorf("%s: the %s does not name %s: %q", name, who, w, text)
				}
			}
		}
	}
}

// A CPU that there is not is named at both ends (field case F37).
func TestAffinityIsSaid(t *testing.T) {
	if _, err := osnet.UsableCPUs(); err != nil {
		t.Skip("this system does not let a program choose its CPUs")
	}
	ts := startServer(t, &Server{})
	_, err := runClient(t, ts.client(plan.Plan{Bytes: 1000, Affinity: []int{1023}}))
	wantError(t, err, codeAffinity, "option")
	if !strings.Contains(err.Error(), "1023") || !strings.Contains(err.Error(), "usable") {
		t.Errorf("here: %v", err)
	}
	eventually(t, "the server did not notice", func() bool { return ts.run(0).Err != nil })
	far := 1023
	_, err = runClient(t, ts.client(plan.Plan{Bytes: 1000, RemoteAffinity: &far}))
	wantError(t, err, codeAffinity, "option")
	if !strings.Contains(err.Error(), "1023") {
		t.Errorf("there: %v", err)
	}
	eventually(t, "the server does not say why", func() bool { e := ts.run(1).Err; return e != nil && strings.Contains(e.Text, "1023") })
}

// Control characters inside strings do not end a conversation (field case F47).
func TestControlCharacters(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b"}`:                              `{"a":"b"}`,
		"{\n\t\"a\":\t\"b\"\r\n}":                "{\n\t\"a\":\t\"b\"\r\n}",
		"{\"a\":\"x\ny\tz\r\"}":                  `{"a":"x\ny\tz\r"}`,
		"{\"a\":\"x\x00y\x1f\"}":                 `{"a":"x\ufffdy\ufffd"}`,
		"{\"a\":\"\\\"\x01\\\\\",\n\"b\x02\":1}": "{\"a\":\"\\\"\\ufffd\\\\\",\n\"b\\ufffd\":1}",
		"\"\x01":                                 `"\ufffd`,
		`"\`:                                     `"\`,
		"":                                       "",
	} {
		if diff := cmp.Diff(want, string(escapeControls([]byte(in)))); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	obj, err := decodeObject([]byte("{\"title\":\"cu\x00bic\nline\"}"))
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := obj.string("title"); s != "cu\ufffdbic\nline" {
		t.Errorf("title is %q", s)
	}
}
