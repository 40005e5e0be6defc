package iperf3

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

func TestPairPlain(t *testing.T) {
	for _, ext := range []string{"off", ""} {
		for _, d := range []plan.Direction{plan.Up, plan.Down, plan.Both} {
			t.Run(string(d)+ext, func(t *testing.T) {
				ts := startServer(t, &Server{Timeouts: short()})
				run, err := runClient(t, ts.client(plan.Plan{Direction: d, Bytes: 8 << 20, Streams: 2, Extension: ext}))
				if err != nil {
					t.Fatal(err)
				}
				srv := ts.run(0)
				for i, s := range run.Streams {
					t.Logf("%d %s sender %+v receiver %+v", s.ID, s.Direction, *s.Sender, *s.Receiver)
					o := srv.Streams[i]
					if s.ID != o.ID || *s.Sender.Retransmits < 0 || s.Sender.Bytes != o.Sender.Bytes || s.Receiver.Bytes != o.Receiver.Bytes {
						t.Errorf("client %+v\nserver %+v", s, o)
					}
				}
				_ = result.Up
			})
		}
	}
}
