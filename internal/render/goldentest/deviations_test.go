package goldentest_test

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// failures collects what a test would fail with.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestDeviations(t *testing.T) {
	t.Parallel()
	d := goldentest.ReadDeviations(t)
	// A line goes on both sides.
	v := goldentest.Golden{Release: "3.21", Name: "tcp_json_V.client"}
	if want, got := d.Apply(v, "Control connection MSS 1448\n{\n}\n", "{\n}\n"); want != "{\n}\n" || got != want {
		t.Errorf("%q %q", want, got)
	}
	// A part goes, the rest of its lines stays.
	r := goldentest.Golden{Release: "3.12", Name: "tcp_R_V.client"}
	if want, got := d.Apply(r, "[ ID] Bitrate         Retr  Cwnd\n", "[ ID] Bitrate\n"); want != "[ ID] Bitrate\n" || got != want {
		t.Errorf("%q %q", want, got)
	}
	// Another case, another release: nothing.
	for _, g := range []goldentest.Golden{{Release: "3.21", Name: "tcp_V.client"}, {Release: "3.21", Name: "garbage_client.server"}} {
		const text = "WARNING:  Size of data read does not correspond\nBitrate         Retr  Cwnd\n"
		if want, _ := d.Apply(g, text, ""); want != text {
			t.Errorf("%s: %q", g.ID(), want)
		}
	}
	f := &failures{TB: t}
	if d.CheckUsed(f, false); f.n != 0 {
		t.Errorf("%d unused rows among those that were", f.n)
	}
	d.Apply(goldentest.Golden{Release: "3.12", Name: "garbage_client.server"}, "nothing of it\n", "")
	if d.CheckUsed(f, false); f.n != 1 {
		t.Errorf("%d rows that changed nothing, want 1", f.n)
	}
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	g := goldentest.One(t, "3.12", "tcp_json.server.json")
	if g.ID() != "3.12/tcp_json.server.json" || !g.Server() || len(g.Data) == 0 {
		t.Errorf("%s", g.ID())
	}
	if c := goldentest.One(t, "3.21", "logfile.cl.log.contents.txt"); c.Server() || c.Ext != "txt" {
		t.Errorf("%s", c.ID())
	}
}
