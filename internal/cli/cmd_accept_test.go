package cli

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// The commands that a report advises name what it was made with, and can be pasted into a shell.
func TestAcceptWords(t *testing.T) {
	for _, c := range []struct {
		o           acceptOptions
		port        int
		host, again string
	}{
		{acceptOptions{}, 0, "192.0.2.2", "--link 1G --profile metro"},
		{acceptOptions{}, 5201, "192.0.2.2", "--link 1G --profile metro"},
		{acceptOptions{link: 1e9, profile: "metro", streams: 4, window: 1 << 20, cc: "cubic", mtu: 1400}, 5300, "192.0.2.2 -p 5300", "--link 1G --profile metro -P 4 -w 1M -C cubic --mtu 1400"},
		{acceptOptions{file: "line 4711's.yaml"}, 0, "192.0.2.2", `--suite 'line 4711'\''s.yaml'`},
		{acceptOptions{file: "line.yaml", link: 1e9}, 0, "192.0.2.2", "--suite line.yaml --link 1G"},
	} {
		c.o.plan.Port = c.port
		a := &acceptance{o: &c.o, host: "192.0.2.2", method: suite.Method{Suite: suite.Default(suite.Metro, units.GbitPerSec)}}
		if host, again := a.words(); host != c.host || again != c.again {
			t.Errorf("%q %q, want %q %q", host, again, c.host, c.again)
		}
	}
	if got := shellWord(""); got != "''" {
		t.Errorf("an empty word: %s", got)
	}
}

// A step that could not begin ends an acceptance with its reason, whatever came of the self-check behind it.
func TestLastRefusal(t *testing.T) {
	gone := &result.Error{Code: "connect", Text: "nobody there"}
	ok := method.Done{Step: method.Step{Name: "A0"}, Run: &result.Run{}}
	lost := method.Done{Step: method.Step{Name: "A1-up-1"}, Err: gone, Run: &result.Run{Err: gone}}
	self := method.Done{Step: method.Step{Name: suite.SelfStep}, Run: &result.Run{}}
	for _, c := range []struct {
		history []method.Done
		want    *result.Error
	}{
		{[]method.Done{ok, lost, self}, gone},
		{[]method.Done{ok, lost}, gone},
		{[]method.Done{ok, lost, ok, self}, nil},
		{[]method.Done{ok, {Step: method.Step{Name: "swap:A2-up-1"}, Err: gone, Run: &result.Run{Err: gone}}}, nil}, // no item depends on it
		{[]method.Done{lost}, nil}, // the report's own rule tells it
		{nil, nil},
	} {
		if got := lastRefusal(c.history); got != c.want {
			t.Errorf("%+v: %v, want %v", c.history, got, c.want)
		}
	}
}
