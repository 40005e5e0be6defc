//go:build linux

package dropin

import (
	"encoding/json"
	"strings"
	"testing"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/lab"
)

// failing is a line of errors.jsonl: a command line that failed with no server about.
type failing struct {
	Case   string
	Argv   []string
	Exit   int
	Stdout string
	Stderr string
}

// failures runs the recorded command lines that fail without a server, in one pair:
// none of them needs it for long.
func failures(t *testing.T, dev *deviations, release string) {
	b := newBench(t, release)
	// 192.0.2.99 is silent: a neighbour that is not there would be reported at once.
	if got := b.wait(b.startCmd(b.net.Near, lab.Command{Args: []string{
		"ip", "neigh", "replace", "192.0.2.99", "lladdr", "02:00:00:00:00:99", "dev", lab.PairNear, "nud", "permanent",
	}})); got.exit != 0 {
		t.Fatal(got)
	}
	n := 0
	for line := range strings.Lines(golden(t, release, "errors.jsonl")) {
		var e failing
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		n++
		got := b.client(nil, e.Argv...)
		usage := strings.NewReplacer(compat.Usage, "<short usage, 2 lines>\n", compat.Help(), "<long usage text, 6097 bytes>\n")
		got.stdout, got.stderr = usage.Replace(got.stdout), usage.Replace(got.stderr)
		// What the command line alone decides has its rows under the recording's own name.
		got.stdout, e.Stdout = dev.without(release, "errors/"+e.Case, got.stdout, e.Stdout)
		got.stderr, e.Stderr = dev.without(release, "errors/"+e.Case, got.stderr, e.Stderr)
		want := map[string]string{".stderr.txt": e.Stderr}
		switch {
		case strings.HasPrefix(e.Stdout, "{\n"):
			want[".json"] = e.Stdout
		case strings.HasPrefix(e.Stdout, "{"):
			want[".jsonl"] = e.Stdout
		default:
			want[".txt"] = e.Stdout
		}
		comparison{bench: b, dev: dev, name: "error_" + e.Case, want: want}.end(e.Exit, got)
	}
	if n < 60 {
		t.Errorf("only %d entries", n)
	}
}

// without removes what the rows of one name allow to differ.
func (d *deviations) without(release, name, got, want string) (string, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	want, got = d.all.Apply(goldenNamed(release, name), want, got)
	return got, want
}
