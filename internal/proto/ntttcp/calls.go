package ntttcp

import (
	"errors"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// callsOf puts what the Windows dialect wants of single calls into c.
func (c *Config) callsOf(n *plan.NTTTCP) {
	c.CountCalls, c.TimeCalls = true, n.Latency
	c.Verify = n.Verify && !n.Sends()
}

// calls puts it into an engine's settings.
func (c Config) calls(cfg *traffic.Config) {
	cfg.CountCalls, cfg.TimeCalls = c.CountCalls || c.TimeCalls, c.TimeCalls
	if c.Verify {
		cfg.Verify, cfg.Fill = true, PayloadByte
	}
}

// countDatagrams makes the calls of a count of datagrams, each of which is one.
func (c Config) countDatagrams(t *traffic.Totals) {
	if !c.CountCalls {
		return
	}
	for i := range t.Flows {
		if f := &t.Flows[i]; f.IO == nil && f.Total.Packets != nil {
			f.IO = &result.IOCount{Completions: *f.Total.Packets}
		}
	}
}

// corrupt says which streams brought other bytes than were sent; nil = none.
func corrupt(t traffic.Totals) *result.Error {
	var first error
	n := 0
	for _, f := range t.Flows {
		var e *traffic.CorruptError
		if errors.As(f.Err, &e) {
			if n++; first == nil {
				first = e
			}
		}
	}
	if first == nil {
		return nil
	}
	return &result.Error{
		Code: "corrupt", Remote: true,
		Text: fmt.Sprintf("%d of %d connections brought wrong bytes: %v", n, len(t.Flows), first),
	}
}
