package plan

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fullbore-net/fullbore/result"
)

func TestFilledIsComplete(t *testing.T) {
	p := Plan{Host: "h"}.Filled()
	want := Plan{
		Protocol: "iperf3", Transport: TCP, Direction: Up, Host: "h", Port: 5201, Streams: 1, Duration: 10 * time.Second,
		Interval: time.Second, BlockSize: 128 << 10, ReceiveTimeout: 2 * time.Minute, PacingTimer: 1000,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	for name, p := range map[string]Plan{
		"endless": {Host: "h", Endless: true}, "bytes": {Host: "h", Bytes: 1}, "blocks": {Host: "h", Blocks: 1}, "file": {Host: "h", File: "f"},
	} {
		if d := p.Filled().Duration; d != 0 {
			t.Errorf("%s: a duration of %v was filled in", name, d)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	one := func(change func(*Plan)) Plan {
		p := Plan{Host: "h"}
		change(&p)
		return p
	}
	cpu := []int{-1}
	for field, p := range map[string]Plan{
		"host":        {},
		"port":        one(func(p *Plan) { p.Port = 70000 }),
		"family":      one(func(p *Plan) { p.Family = 5 }),
		"transport":   one(func(p *Plan) { p.Transport = "quic" }),
		"direction":   one(func(p *Plan) { p.Direction = "sideways" }),
		"streams":     one(func(p *Plan) { p.Streams = MaxStreamsExt + 1 }),
		"duration":    one(func(p *Plan) { p.Duration = MaxDuration + 1 }),
		"bytes":       one(func(p *Plan) { p.Bytes = -1 }),
		"blocks":      one(func(p *Plan) { p.Blocks = -1 }),
		"omit":        one(func(p *Plan) { p.Omit = MaxOmit + 1 }),
		"interval":    one(func(p *Plan) { p.Interval = time.Millisecond }),
		"block_size":  one(func(p *Plan) { p.BlockSize = MaxBlockSize + 1 }),
		"bitrate":     one(func(p *Plan) { p.Bitrate = -1 }),
		"burst":       one(func(p *Plan) { p.Burst = MaxBurst + 1 }),
		"fq_rate":     one(func(p *Plan) { p.FQRate = -1 }),
		"window":      one(func(p *Plan) { p.Window = MaxWindow + 1 }),
		"mss":         one(func(p *Plan) { p.MSS = MinMSS - 1 }),
		"tos":         one(func(p *Plan) { p.TOS = 256 }),
		"flow_label":  one(func(p *Plan) { p.FlowLabel = MaxFlowLabel + 1 }),
		"affinity":    one(func(p *Plan) { p.Affinity = cpu }),
		"file":        one(func(p *Plan) { p.File, p.Transport = "f", UDP }),
		"max_bytes":   one(func(p *Plan) { p.MaxBytes = -1 }),
		"max_rate":    one(func(p *Plan) { p.MaxRate = -1 }),
		"client_port": one(func(p *Plan) { p.ClientPort = -1 }),
		"swap":        one(func(p *Plan) { p.Swap, p.Endless = &Swap{}, true }),
		"swap.port":   one(func(p *Plan) { p.Swap = &Swap{Port: MinSwapPort - 1} }),
	} {
		err := p.Validate()
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	// All at once, one line each.
	err := Plan{Port: -1, TOS: 300, MSS: 1}.Validate()
	if err == nil {
		t.Fatal("three faults and more were not seen")
	}
	for _, field := range []string{"host", "port", "tos", "mss"} {
		if !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s is not named in %q", field, err)
		}
	}
	for name, p := range map[string]Plan{
		"two ends":        {Host: "h", Duration: time.Second, Bytes: 1},
		"endless, bytes":  {Host: "h", Endless: true, Bytes: 1},
		"129, no ext":     {Host: "h", Streams: 129, Extension: "off"},
		"small datagrams": {Host: "h", Transport: UDP, BlockSize: MinUDPBlock - 1},
		"catch-up":        {Host: "h", Transport: UDP, BlockSize: 1000, Steady: true, CatchUp: 2 * MaxCatchUp},
		"large datagrams": {Host: "h", Transport: UDP, BlockSize: MaxUDPBlock + 1},
		"roles, UDP":      {Host: "h", Transport: UDP, Swap: &Swap{}},
		"roles, probes":   {Host: "h", Probe: &Probe{}, Swap: &Swap{}},
		"roles, no ext":   {Host: "h", Extension: "off", Swap: &Swap{}},
	} {
		if p.Validate() == nil {
			t.Errorf("%s: no fault was seen", name)
		}
	}
	if err := (Plan{Host: "h"}).Validate(); err != nil {
		t.Errorf("the simplest plan: %v", err)
	}
}

func TestPlanSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9.:%]{0,12}`)
		p := Plan{
			Host: word.Draw(t, "host"), Port: rapid.IntRange(0, 65535).Draw(t, "port"),
			Transport: rapid.SampledFrom([]Transport{"", TCP, UDP, SCTP}).Draw(t, "transport"),
			Direction: rapid.SampledFrom([]Direction{"", Up, Down, Both}).Draw(t, "direction"),
			Streams:   rapid.IntRange(0, 10000).Draw(t, "streams"), Duration: time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "duration")),
			Bytes: rapid.Int64().Draw(t, "bytes"), Bitrate: rapid.Int64().Draw(t, "bitrate"), Window: rapid.Int64().Draw(t, "window"),
			Affinity: rapid.SampledFrom([][]int{nil, {1}, {0, 3}}).Draw(t, "affinity"), Title: rapid.String().Draw(t, "title"),
			Send:    rapid.SampledFrom([]Send{SendCopy, SendCheapest, SendZeroCopy}).Draw(t, "send"),
			Receive: rapid.SampledFrom([]Receive{Copy, Discard}).Draw(t, "receive"), MaxBytes: rapid.Int64().Draw(t, "max bytes"),
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
	})
	if _, err := Decode([]byte(`{"host":"h","prot":1}`)); err == nil {
		t.Error("an unknown field was taken")
	}
	data, err := json.Marshal(Plan{Host: "h", Auth: &Auth{Username: "u", Password: "secret"}})
	if err != nil || strings.Contains(string(data), "secret") {
		t.Errorf("the password is in %s (%v)", data, err)
	}
}

func TestServe(t *testing.T) {
	s := Serve{RateLimit: 1}.Filled()
	if len(s.Listen) != 1 || s.Listen[0] != netip.MustParseAddrPort("[::]:5201") || s.RateLimitWindow != 5*time.Second || s.TimeSkew != 10*time.Second {
		t.Errorf("filled: %+v", s)
	}
	for field, s := range map[string]Serve{
		"max_tests":    {Exclusive: true, MaxTests: 2},
		"idle_timeout": {IdleTimeout: -1},
		"interval":     {Interval: time.Hour},
		"max_streams":  {MaxStreams: MaxStreamsExt + 1},
		"max_rate":     {MaxRate: -1},
		"rate_limit":   {RateLimit: -1},
		"max_time":     {MaxDuration: -1},
		"users_file":   {UsersFile: "users"},
	} {
		var fault *FieldError
		if err := s.Validate(); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if err := (Serve{}).Validate(); err != nil {
		t.Errorf("the simplest server: %v", err)
	}
}

func TestSends(t *testing.T) {
	for _, c := range []struct {
		d              Direction
		client, server bool
	}{{Up, true, false}, {Down, false, true}, {Both, true, true}} {
		p := Plan{Direction: c.d}
		if p.Sends(result.Client) != c.client || p.Sends(result.Server) != c.server {
			t.Errorf("%s: client sends %v, server sends %v", c.d, p.Sends(result.Client), p.Sends(result.Server))
		}
	}
}
