package firewall

import (
	"strings"
)

// Command is one step that changes a filter, or a line that a person must write
// somewhere.
type Command struct {
	Args []string `json:"args,omitempty"` // program and arguments
	// Line is the command as it is typed; with Args it is the same, quoted for the shell of
	// its system. Without Args it is for people alone: fullbore does not run it.
	Line string `json:"line"`
	Why  string `json:"why,omitempty"`
}

// posix is a command whose line is quoted for a POSIX shell.
func posix(why string, args ...string) Command {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quote(a)
	}
	return Command{Args: args, Line: strings.Join(words, " "), Why: why}
}

// byHand is a line that is only printed.
func byHand(why, line string) Command { return Command{Line: line, Why: why} }

// quote for a POSIX shell: bare where nothing in it is special.
func quote(s string) string {
	special := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./,:=@%+", r))
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
