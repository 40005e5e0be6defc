// Package getopt splits command lines as the programs that we stand in for do.
// Option tables are data: whoever owns a table also prints its help and its
// documentation from it. The package knows the shape of options, not their meaning.
//
// ParseGNU is getopt_long of the GNU C library, which iperf3 uses.
package getopt

import "strings"

// Arg says whether an option takes a value.
type Arg int

// No value; a value, attached or the next word; a value only if it is attached.
const (
	None Arg = iota
	Required
	Optional
)

// Option is one spelling of an option. Spellings that mean the same share a Key: the
// C library does not call an abbreviation ambiguous between them. A short and a long
// name that take their value differently are two entries.
type Option struct {
	Key   string
	Short byte   // 0 = none
	Long  string // without dashes; "" = none
	Arg   Arg
}

// Match is an option found on the command line.
type Match struct {
	Key      string
	Spelling string // canonical, with dashes: "-p", "--port"
	Value    string
	HasValue bool
}

// Result is a command line taken apart. When Err is set, Matches are the options
// before the fault, in order: a program that acts while it reads (prints its version,
// checks a range) looks at them first. Rest is then incomplete.
type Result struct {
	Matches []Match
	Rest    []string // words that are not options, in order
	Err     *Error
}

// Kind is the nature of a fault.
type Kind int

// The faults of ParseGNU.
const (
	Unrecognized    Kind = iota + 1 // no such long option
	Ambiguous                       // an abbreviation of several
	InvalidShort                    // no such short option
	MissingValue                    // the line ends where a value is needed
	UnexpectedValue                 // --name=value for an option without a value
)

// Error is the fault that ended a parse.
type Error struct {
	Kind       Kind
	Word       string   // as typed, without the dash or dashes; "--ver=3" gives "ver=3"
	Candidates []string // long names that Ambiguous could mean, in table order
	text       string
}

// Error is the C library's message without the program name in front:
// "unrecognized option '--bogus'".
func (e *Error) Error() string { return e.text }

// ParseGNU takes args (without the program name) apart as getopt_long with its
// default, permuting order does (glibc 2.26 … 2.41, posix/getopt.c):
//
//   - short options bundle; a value is the rest of the word or the next word,
//     whatever it looks like; an optional value is the rest of the word only;
//   - a long option may be abbreviated as long as its meaning stays unique, and an
//     exact name wins over longer ones; a value follows = or is the next word, an
//     optional one follows = only;
//   - words that are not options may stand anywhere; a lone - is such a word, and
//     everything after -- is.
func ParseGNU(table []Option, args []string) Result {
	var r Result
	for i := 0; i < len(args) && r.Err == nil; {
		word := args[i]
		i++
		switch {
		case word == "--":
			r.Rest = append(r.Rest, args[i:]...)
			return r
		case strings.HasPrefix(word, "--"):
			i += r.long(table, word[2:], args[i:])
		case len(word) > 1 && word[0] == '-':
			i += r.cluster(table, word[1:], args[i:])
		default:
			r.Rest = append(r.Rest, word)
		}
	}
	return r
}

// long handles one long option and reports how many words of next it consumed.
func (r *Result) long(table []Option, word string, next []string) int {
	name, value, attached := strings.Cut(word, "=")
	opt := r.find(table, name, word)
	if opt == nil {
		return 0
	}
	m := Match{Key: opt.Key, Spelling: "--" + opt.Long, Value: value, HasValue: attached}
	used := 0
	switch {
	case opt.Arg == None && attached:
		r.Err = &Error{Kind: UnexpectedValue, Word: word, text: "option '--" + opt.Long + "' doesn't allow an argument"}
		return 0
	case opt.Arg == Required && !attached:
		if len(next) == 0 {
			r.Err = &Error{Kind: MissingValue, Word: word, text: "option '--" + opt.Long + "' requires an argument"}
			return 0
		}
		m.Value, m.HasValue = next[0], true
		used = 1
	}
	r.Matches = append(r.Matches, m)
	return used
}

// find resolves a long name, exact or abbreviated; nil after setting r.Err.
func (r *Result) find(table []Option, name, word string) *Option {
	var found []*Option
	for i := range table {
		opt := &table[i]
		switch {
		case opt.Long == "" || !strings.HasPrefix(opt.Long, name):
		case opt.Long == name:
			return opt
		case len(found) == 0 || opt.Key != found[0].Key || opt.Arg != found[0].Arg:
			found = append(found, opt)
		}
	}
	switch len(found) {
	case 0:
		r.Err = &Error{Kind: Unrecognized, Word: word, text: "unrecognized option '--" + word + "'"}
		return nil
	case 1:
		return found[0]
	}
	e := &Error{Kind: Ambiguous, Word: word, text: "option '--" + word + "' is ambiguous; possibilities:"}
	for _, opt := range found {
		e.Candidates = append(e.Candidates, opt.Long)
		e.text += " '--" + opt.Long + "'"
	}
	r.Err = e
	return nil
}

// cluster handles a word of short options and reports how many words of next it
// consumed.
func (r *Result) cluster(table []Option, letters string, next []string) int {
	for i := range len(letters) {
		opt := findShort(table, letters[i])
		if opt == nil {
			r.Err = &Error{Kind: InvalidShort, Word: letters[i : i+1], text: "invalid option -- '" + letters[i:i+1] + "'"}
			return 0
		}
		m := Match{Key: opt.Key, Spelling: "-" + letters[i:i+1]}
		rest := letters[i+1:]
		switch {
		case opt.Arg == None:
			r.Matches = append(r.Matches, m)
			continue
		case rest != "":
			m.Value, m.HasValue = rest, true
		case opt.Arg == Required && len(next) == 0:
			r.Err = &Error{Kind: MissingValue, Word: letters[i : i+1], text: "option requires an argument -- '" + letters[i:i+1] + "'"}
			return 0
		case opt.Arg == Required:
			m.Value, m.HasValue = next[0], true
			r.Matches = append(r.Matches, m)
			return 1
		}
		r.Matches = append(r.Matches, m)
		return 0
	}
	return 0
}

func findShort(table []Option, c byte) *Option {
	if c == 0 {
		return nil
	}
	for i := range table {
		if table[i].Short == c {
			return &table[i]
		}
	}
	return nil
}
