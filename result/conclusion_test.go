package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/result"
)

func TestConclusionSurvivesUnfold(t *testing.T) {
	total := &result.Total{End: 10, Bytes: 1e9}
	events := []result.Event{
		{Kind: result.KindStart, End: result.Client, Seq: 1, Head: &result.Run{
			Schema: result.Schema, End: result.Client,
			Streams: []result.Stream{{ID: 1, Direction: result.Up, Local: result.Addr{Host: "10.0.0.1"}, Remote: result.Addr{Host: "10.0.0.2"}}},
		}},
		{Kind: result.KindFinish, End: result.Client, Seq: 2, Finish: &result.Finish{
			Streams: []result.Stream{{ID: 1, Direction: result.Up, Local: result.Addr{Host: "10.0.0.1"}, Remote: result.Addr{Host: "10.0.0.2"}, Sender: total, Receiver: total}},
		}},
		{Kind: result.KindConclusion, End: result.Client, Seq: 3, Conclusion: &result.Conclusion{
			Summary: "it is fast", Flags: []string{"unsteady"}, Next: &result.Step{Command: "fullbore doctor", Why: "look"},
			Limits: []result.DirectionLimit{{Direction: result.Up, Limit: "receive-window", Shares: &result.Shares{Window: 0.9, Network: 0.1}}},
		}},
	}
	run := result.Fold(events)
	sum := run.Sum(result.Up)
	if run.Summary != "it is fast" || sum.Limit != "receive-window" || sum.Shares.Window != 0.9 || run.Next == nil {
		t.Fatalf("the conclusion is not in the run: %+v, %+v", run, sum)
	}
	if diff := cmp.Diff(run, result.Fold(result.Unfold(run))); diff != "" {
		t.Error("replayed run differs (-run +replayed):\n" + diff)
	}
	replay := result.Unfold(run)
	for _, e := range replay {
		if e.Head != nil && (e.Head.Summary != "" || e.Head.Flags != nil || e.Head.Next != nil) {
			t.Errorf("%s: its head knows the end already", e.Kind)
		}
	}
	if last := replay[len(replay)-1].Kind; last != result.KindConclusion {
		t.Errorf("last event is %s", last)
	}
}

func TestEndNames(t *testing.T) {
	stream := []result.Stream{{Local: result.Addr{Host: "10.0.0.1"}, Remote: result.Addr{Host: "10.0.0.2"}}}
	self := []result.Stream{{Local: result.Addr{Host: "127.0.0.1"}, Remote: result.Addr{Host: "127.0.0.1"}}}
	named := func(client, server string) result.Hosts {
		return result.Hosts{Client: &result.Host{Name: client}, Server: &result.Host{Name: server}}
	}
	for name, c := range map[string]struct {
		run            result.Run
		client, server string
	}{
		"addresses":      {result.Run{End: result.Client, Streams: stream}, "10.0.0.1", "10.0.0.2"},
		"server's view":  {result.Run{End: result.Server, Streams: stream}, "10.0.0.2", "10.0.0.1"},
		"names":          {result.Run{End: result.Client, Streams: stream, Hosts: named("web1", "db2")}, "web1", "db2"},
		"one name":       {result.Run{End: result.Client, Streams: stream, Hosts: named("web1", "")}, "10.0.0.1", "10.0.0.2"},
		"two namespaces": {result.Run{End: result.Client, Streams: stream, Hosts: named("vm", "vm")}, "10.0.0.1", "10.0.0.2"},
		"loopback":       {result.Run{End: result.Client, Streams: self, Hosts: named("vm", "vm")}, "127.0.0.1 (client)", "127.0.0.1 (server)"},
		"no stream yet": {
			result.Run{End: result.Client, Test: result.Test{Target: "db2"}, Hosts: result.Hosts{Client: &result.Host{Name: "web1"}}},
			"web1", "db2",
		},
		"server, no stream yet": {
			result.Run{End: result.Server, Wire: &result.Wire{AcceptedFrom: &result.Addr{Host: "10.0.0.1"}}},
			"10.0.0.1", "server",
		},
		"nothing known": {result.Run{}, "client", "server"},
	} {
		if client, server := c.run.EndNames(); client != c.client || server != c.server {
			t.Errorf("%s: %q, %q", name, client, server)
		}
	}
}
