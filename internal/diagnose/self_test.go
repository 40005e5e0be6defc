package diagnose_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/diagnose"
	"github.com/fullbore-net/fullbore/result"
)

// TestSelfNamesTheProcessor judges diagnoses of "self" that a user without any privilege made, on a quiet
// machine, with one core busy and with all: this host's CPU is the limit, with the core and its
// share, and no network is blamed.
func TestSelfNamesTheProcessor(t *testing.T) {
	for _, name := range []string{"self-idle", "self-busy1", "self-busy2"} {
		rep := load(t, "testdata/self/"+name+".json.gz")
		vs := diagnose.Judge(diagnose.History(rep), rep.Facts)
		if len(vs) == 0 || !diagnose.Conclusive(vs) {
			t.Fatalf("%s: %+v", name, vs)
		}
		for _, v := range vs {
			if v.Note {
				t.Errorf("%s: a note about a path that is none: %s", name, v.Summary)
				continue
			}
			if v.Code != diagnose.SenderCPU && v.Code != diagnose.ReceiverCPU {
				t.Errorf("%s: %s: %s", name, v.Code, v.Summary)
			}
			if value(&v, "core") < 0 || value(&v, "busy") < 0.8 || !strings.Contains(v.Summary, "This host's CPU is the limit: core ") || !strings.Contains(v.Summary, "% busy") {
				t.Errorf("%s: core %v, busy %v: %s", name, value(&v, "core"), value(&v, "busy"), v.Summary)
			}
			if v.Host != result.Client && v.Host != result.Server {
				t.Errorf("%s: host %q", name, v.Host)
			}
		}
	}
}

// A stream over loopback that leaves every core some time: several carry twice as much, it loses
// now and then, and no queue stands. That looks like a policer, of which there is none.
func TestSelfTakesTurns(t *testing.T) {
	rep := load(t, "testdata/self/self-turns.json.gz")
	vs := diagnose.Judge(diagnose.History(rep), rep.Facts)
	if len(vs) != 1 || vs[0].Code != diagnose.SenderCPU || vs[0].Certainty != diagnose.Likely || !strings.Contains(strings.Join(vs[0].Evidence, "\n"), "no core was busy all the time") {
		t.Fatalf("%+v", vs)
	}
}

// The same between two namespaces, of which one does not tell its name.
func TestPairTakesTurns(t *testing.T) {
	rep := load(t, "testdata/self/pair-turns.json.gz")
	vs := diagnose.Judge(diagnose.History(rep), rep.Facts)
	if len(vs) == 0 || vs[0].Code != diagnose.ReceiverCPU || vs[0].Certainty != diagnose.Likely {
		t.Fatalf("%+v", vs)
	}
	for _, v := range vs[1:] {
		if !v.Note {
			t.Errorf("%s: %s", v.Code, v.Summary)
		}
	}
}

// What needs two machines, or a path between them, is not asked of one.
func TestSelfHasNoPath(t *testing.T) {
	for _, name := range []string{"self-idle", "self-busy1", "self-busy2", "self-turns"} {
		rep := load(t, "testdata/self/"+name+".json.gz")
		facts := *rep.Facts
		facts.Kind, facts.Emulated, facts.Conntrack, facts.QueuesNow, facts.QueuesMax = "wireless", true, ptr(0.99), ptr(1), ptr(8)
		for _, v := range diagnose.Judge(diagnose.History(rep), &facts) {
			switch v.Code {
			case diagnose.SenderCPU, diagnose.ReceiverCPU, diagnose.BacklogDropped, diagnose.Steal:
			default:
				t.Errorf("%s: %s", name, v.Summary)
			}
		}
	}
}
