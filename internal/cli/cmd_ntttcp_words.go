package cli

import (
	"fmt"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/result"
)

// originalLines is what ntttcp-for-linux says, as ERR lines which scripts look for, about a test
// that did not begin; nil = it has no words for it, or hangs. What we know beyond them goes to
// stderr.
func (v *ntttcpView) originalLines(e *result.Error) []string {
	n := v.n
	p := n.inv.Plan
	if n.windows || v.began || n.inv.Serve != nil || p.NTTTCP.NoSync {
		return nil
	}
	const (
		noSocket = "sender: failed to create sync socket"
		noRead   = "cannot read data from the socket for sender/receiver sync"
	)
	switch e.Code {
	case "no-answer", "peer-closed":
		if v.agreed {
			return []string{noRead, "sender: failed to sync with receiver to start test"}
		}
		return []string{noRead, "sender: failed to query receiver state"}
	case "busy":
		return []string{"receiver is busy with an existing test running", "sender: receiver is busy with another test"}
	case "refused":
		if v.agreed {
			return []string{"receiver is not ready to run test with this sender", "sender: receiver refuse to start test right now"}
		}
		return []string{"sender: failed to negotiate test cycle time with receiver"}
	}
	if v.agreed { // the rest is about the sync port
		return nil
	}
	switch e.Code {
	case "resolve":
		return []string{"cannot get address info for receiver", noSocket}
	case "connect":
		return []string{fmt.Sprintf("failed to connect to receiver: %s:%d on socket: 3. errno = %d", p.Host, p.Port-1, e.Errno), noSocket}
	case "address":
		return []string{fmt.Sprintf("failed to get interface name by address [%s]", p.BindHost), noSocket}
	}
	return nil
}

// errorLines is what the console says about an error.
func (v *ntttcpView) errorLines(e *result.Error) []string {
	if e.Code == "sender-interrupted" { // the line of its milestone says it all
		return nil
	}
	if lines := v.originalLines(e); lines != nil {
		return lines
	}
	if v.n.windows {
		return []string{"main failed: " + e.Text}
	}
	return []string{e.Text}
}

// hint is what stderr says about an error for which the console has the original's words.
func (v *ntttcpView) hint(e *result.Error) string {
	if v.originalLines(e) == nil {
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
