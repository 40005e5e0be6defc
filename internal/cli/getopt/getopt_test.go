package getopt_test

import (
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// table has the awkward parts of iperf3's: names that begin alike, an old name for an
// option, an option whose short and long form differ, digits as letters.
var table = []getopt.Option{
	{Key: "port", Short: 'p', Long: "port", Arg: getopt.Required},
	{Key: "verbose", Short: 'V', Long: "verbose"},
	{Key: "json", Short: 'J', Long: "json"},
	{Key: "json-stream", Long: "json-stream"},
	{Key: "version", Short: 'v', Long: "version"},
	{Key: "client", Short: 'c', Long: "client", Arg: getopt.Required},
	{Key: "udp", Short: 'u', Long: "udp"},
	{Key: "bitrate", Short: 'b', Long: "bitrate", Arg: getopt.Required},
	{Key: "bitrate", Long: "bandwidth", Arg: getopt.Required},
	{Key: "time", Short: 't', Long: "time", Arg: getopt.Required},
	{Key: "timestamps", Long: "timestamps", Arg: getopt.Optional},
	{Key: "parallel", Short: 'P', Long: "parallel", Arg: getopt.Required},
	{Key: "reverse", Short: 'R', Long: "reverse"},
	{Key: "congestion", Short: 'C', Long: "congestion", Arg: getopt.Required},
	{Key: "congestion", Long: "congestion-control", Arg: getopt.Required},
	{Key: "version4", Short: '4', Long: "version4"},
	{Key: "version6", Short: '6', Long: "version6"},
	{Key: "debug", Short: 'd'},
	{Key: "debug", Long: "debug", Arg: getopt.Optional},
	{Key: "xml", Short: 'x', Arg: getopt.Optional},
}

func TestParseGNU(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args string   // blank-separated; _ stands for an empty word
		want []string // spelling, or spelling=value
		rest []string
		err  string
	}{
		{name: "nothing"},
		{name: "separate value", args: "-P 3", want: []string{"-P=3"}},
		{name: "attached value", args: "-P3", want: []string{"-P=3"}},
		{name: "cluster", args: "-uR", want: []string{"-u", "-R"}},
		{name: "cluster, value attached", args: "-uRP3", want: []string{"-u", "-R", "-P=3"}},
		{name: "cluster, value next", args: "-uRP 3", want: []string{"-u", "-R", "-P=3"}},
		{name: "digits as options", args: "-64", want: []string{"-6", "-4"}},
		{name: "value with a dash", args: "-t-1 -p -1", want: []string{"-t=-1", "-p=-1"}},
		{name: "value that is an option", args: "-c -u", want: []string{"-c=-u"}},
		{name: "value that ends options", args: "-c -- -u", want: []string{"-c=--", "-u"}},
		{name: "empty value", args: "-c _ --port=", want: []string{"-c=", "--port="}},
		{name: "empty word", args: "_ -u", want: []string{"-u"}, rest: []string{""}},
		{name: "long", args: "--parallel 3 --parallel=4", want: []string{"--parallel=3", "--parallel=4"}},
		{name: "long value with =", args: "--client=a=b", want: []string{"--client=a=b"}},
		{name: "abbreviation", args: "--para 3 --bitr 1M", want: []string{"--parallel=3", "--bitrate=1M"}},
		{name: "exact wins", args: "--json --time 1", want: []string{"--json", "--time=1"}},
		{name: "exact wins whatever the order", args: "--version", want: []string{"--version"}},
		{name: "same meaning is not ambiguous", args: "--b 1M --cong reno", want: []string{"--bitrate=1M", "--congestion=reno"}},
		{name: "optional value", args: "--debug --debug=3 --timestamps=%H", want: []string{"--debug", "--debug=3", "--timestamps=%H"}},
		{name: "optional value is never the next word", args: "--timestamps %H", want: []string{"--timestamps"}, rest: []string{"%H"}},
		{name: "optional value of a letter", args: "-x -xfile -ux -x file", want: []string{"-x", "-x=file", "-u", "-x", "-x"}, rest: []string{"file"}},
		{name: "any order", args: "foo -u bar -p 1 baz", want: []string{"-u", "-p=1"}, rest: []string{"foo", "bar", "baz"}},
		{name: "end of options", args: "-u -- -R --bogus", want: []string{"-u"}, rest: []string{"-R", "--bogus"}},
		{name: "second -- is a word", args: "a -- -- b", rest: []string{"a", "--", "b"}},
		{name: "lone dash", args: "- -u", want: []string{"-u"}, rest: []string{"-"}},
		{name: "repeated", args: "-p 1 -p 2", want: []string{"-p=1", "-p=2"}},

		{name: "unrecognized", args: "-u --frobnicate -R", want: []string{"-u"}, err: "unrecognized option '--frobnicate'"},
		{name: "unrecognized with value", args: "--frob=3", err: "unrecognized option '--frob=3'"},
		{name: "invalid letter", args: "-uy", want: []string{"-u"}, err: "invalid option -- 'y'"},
		{name: "no attached value for the letter", args: "-d3", want: []string{"-d"}, err: "invalid option -- '3'"},
		{name: "dash inside a cluster", args: "-u-", want: []string{"-u"}, err: "invalid option -- '-'"},
		{name: "no value for a letter", args: "-u -c", want: []string{"-u"}, err: "option requires an argument -- 'c'"},
		{name: "no value for a name", args: "--para", err: "option '--parallel' requires an argument"},
		{name: "value not allowed", args: "--reverse=1", err: "option '--reverse' doesn't allow an argument"},
		{name: "value not allowed, abbreviated", args: "--rev=", err: "option '--reverse' doesn't allow an argument"},
		{name: "ambiguous", args: "--ver", err: "option '--ver' is ambiguous; possibilities: '--verbose' '--version' '--version4' '--version6'"},
		{name: "ambiguous with value", args: "--ver=1", err: "option '--ver=1' is ambiguous; possibilities: '--verbose' '--version' '--version4' '--version6'"},
		{name: "same meaning is listed once", args: "--p 1 --c x", want: nil, err: "option '--p' is ambiguous; possibilities: '--port' '--parallel'"},
		{name: "client or congestion", args: "--c x", err: "option '--c' is ambiguous; possibilities: '--client' '--congestion' '--congestion-control'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(tt.args)
			for i := range args {
				if args[i] == "_" {
					args[i] = ""
				}
			}
			r := getopt.ParseGNU(table, args)
			if diff := cmp.Diff(tt.want, flatten(r.Matches)); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
			got := ""
			if r.Err != nil {
				got = r.Err.Error()
			} else if diff := cmp.Diff(tt.rest, r.Rest); diff != "" {
				t.Errorf("rest (-want +got):\n%s", diff)
			}
			if got != tt.err {
				t.Errorf("error %q, want %q", got, tt.err)
			}
		})
	}
}

func flatten(matches []getopt.Match) []string {
	var out []string
	for _, m := range matches {
		s := m.Spelling
		if m.HasValue {
			s += "=" + m.Value
		}
		out = append(out, s)
	}
	return out
}

func TestErrorData(t *testing.T) {
	t.Parallel()
	r := getopt.ParseGNU(table, []string{"--ver=3"})
	want := &getopt.Error{Kind: getopt.Ambiguous, Word: "ver=3", Candidates: []string{"verbose", "version", "version4", "version6"}}
	if r.Err == nil || r.Err.Kind != want.Kind || r.Err.Word != want.Word || !cmp.Equal(r.Err.Candidates, want.Candidates) {
		t.Errorf("got %+v, want %+v", r.Err, want)
	}
	for word, kind := range map[string]getopt.Kind{
		"--frob": getopt.Unrecognized, "-y": getopt.InvalidShort, "-c": getopt.MissingValue,
		"--client": getopt.MissingValue, "--udp=1": getopt.UnexpectedValue,
	} {
		if r := getopt.ParseGNU(table, []string{word}); r.Err == nil || r.Err.Kind != kind {
			t.Errorf("%s: %+v, want kind %d", word, r.Err, kind)
		}
	}
}

// TestSpellings: however a list of options is written down, it is read as the same
// list, and the words between them come out in order.
func TestSpellings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var args, rest []string
		var want []getopt.Match
		value := rapid.StringOfN(rapid.RuneFrom([]rune("a-=%1 ")), 0, 6, -1)
		for range rapid.IntRange(0, 8).Draw(t, "options") {
			if rapid.Bool().Draw(t, "word before") {
				word := rapid.SampledFrom([]string{"foo", "", "-", "a-b", "x=y"}).Draw(t, "word")
				args = append(args, word)
				rest = append(rest, word)
			}
			opt := rapid.SampledFrom(table).Draw(t, "option")
			m := getopt.Match{Key: opt.Key}
			short := opt.Short != 0 && (opt.Long == "" || rapid.Bool().Draw(t, "short"))
			sep := "="
			if short {
				m.Spelling, sep = "-"+string(rune(opt.Short)), ""
			} else {
				m.Spelling = "--" + opt.Long
			}
			switch {
			case opt.Arg == getopt.None:
				args = append(args, m.Spelling)
			case opt.Arg == getopt.Optional && rapid.Bool().Draw(t, "without value"):
				args = append(args, m.Spelling)
			default:
				m.Value, m.HasValue = value.Draw(t, "value"), true
				attach := opt.Arg == getopt.Optional || rapid.Bool().Draw(t, "attached")
				if short && m.Value == "" {
					attach = false // -p with nothing behind it means the next word
				}
				switch {
				case attach:
					args = append(args, m.Spelling+sep+m.Value)
				case opt.Arg == getopt.Required:
					args = append(args, m.Spelling, m.Value)
				default:
					m.HasValue = false
					args = append(args, m.Spelling)
				}
			}
			want = append(want, m)
		}
		if rapid.Bool().Draw(t, "end of options") {
			args = append(args, "--", "-u", "--", "--nonsense")
			rest = append(rest, "-u", "--", "--nonsense")
		}
		r := getopt.ParseGNU(table, args)
		if r.Err != nil || !cmp.Equal(want, r.Matches) || !cmp.Equal(rest, r.Rest) {
			t.Fatalf("%q: %v\nmatches %s\nrest %s", args, r.Err, cmp.Diff(want, r.Matches), cmp.Diff(rest, r.Rest))
		}
	})
}

func FuzzParseGNU(f *testing.F) {
	for _, s := range []string{
		"-uR\n-P2\n--time=1\n--bitr\n1M", "--ver", "--=x", "-p", "--\n-u", "-c\n--", "-d3", "-\n-", "--debug=\n--timestamps\n%H", "-u\x00", "--port=\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		r := getopt.ParseGNU(table, args)
		// Options before a fault stand whatever follows it, and a fault is found
		// whatever follows it.
		again := getopt.ParseGNU(table, append(args[:len(args):len(args)], "-u"))
		switch {
		case r.Err == nil:
			if len(again.Matches) < len(r.Matches) || len(again.Rest)+len(again.Matches) < len(r.Rest)+len(r.Matches) {
				t.Errorf("%q: a further word removed something: %+v, then %+v", args, r, again)
			}
		case r.Err.Kind == getopt.MissingValue:
			if again.Err != nil || len(again.Matches) != len(r.Matches)+1 {
				t.Errorf("%q: a further word is not taken as the missing value: %+v", args, again)
			}
		case again.Err == nil || again.Err.Error() != r.Err.Error() || !cmp.Equal(r.Matches, again.Matches):
			t.Errorf("%q: %v, with a further word %v", args, r.Err, again.Err)
		}
		for _, m := range r.Matches {
			if m.Key == "" || !strings.HasPrefix(m.Spelling, "-") {
				t.Errorf("%q: %+v", args, m)
			}
		}
	})
}
