package cli

import (
	"fmt"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/result"
)

// lastWords are the ERR lines of ntttcp-for-linux about a test that did not begin, which scripts
// look for. What we know beyond them goes to stderr.
var lastWords = map[string][]string{
	"resolve":     {"cannot get address info for receiver", "sender: failed to create sync socket"},
	"address":     {"sender: failed to create sync socket"},
	"busy":        {"receiver is busy with an existing test running", "sender: receiver is busy with another test"},
	"no-answer":   {"cannot read data from the socket for sender/receiver sync", "sender: failed to query receiver state"},
	"peer-closed": {"cannot read data from the socket for sender/receiver sync", "sender: failed to query receiver state"},
	"refused":     {"receiver is not ready to run test with this sender", "sender: receiver refuse to start test right now"},
}

// originalLines is what ntttcp-for-linux says about e; nil = it has no words for it.
func (n *ntttcpRun) originalLines(e *result.Error, began bool) []string {
	if n.windows || began || n.inv.Serve != nil {
		return nil
	}
	p := n.inv.Plan
	if e.Code == "connect" && !p.NTTTCP.NoSync {
		return []string{
			fmt.Sprintf("failed to connect to receiver: %s:%d on socket: 3. errno = %d", p.Host, p.Port-1, e.Errno),
			"sender: failed to create sync socket",
		}
	}
	return lastWords[e.Code]
}

// errorLines is what the console says about an error.
func (v *ntttcpView) errorLines(e *result.Error) []string {
	if e.Code == "sender-interrupted" { // the line of its milestone says it all
		return nil
	}
	if lines := v.n.originalLines(e, v.began); lines != nil {
		return lines
	}
	if v.n.windows {
		return []string{"main failed: " + e.Text}
	}
	return []string{e.Text}
}

// hint is what stderr says about an error for which the console has the original's words.
func (v *ntttcpView) hint(e *result.Error) string {
	if v.n.originalLines(e, v.began) == nil {
		return ""
	}
	return e.Text
}

// exitCode is that of a test that ended with e. The originals return 0 whatever broke off a test
// that had begun; here it is the native commands' code (docs/compat/ntttcp.md).
func (n *ntttcpRun) exitCode(e *result.Error, began bool) int {
	switch {
	case e == nil, e.Code == "sender-interrupted":
		return compat.ExitOK
	case n.windows:
		return runExit(e)
	case e.Interrupted && began:
		return compat.ExitOK
	case e.Interrupted:
		return compat.ExitInterrupted
	case e.Code == "plan":
		return compat.ExitConflict
	case began:
		return exitBroken
	}
	return compat.ExitSync
}

// cutOffCode is the exit code of a second signal.
func (n *ntttcpRun) cutOffCode() int {
	if n.windows {
		return exitInterrupted
	}
	return compat.ExitInterrupted
}
