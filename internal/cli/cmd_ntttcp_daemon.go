package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/process"
)

// ntttcpDetachedVariable tells a process that it is the background half of ntttcp -D: its
// descriptor 3 leads to the parent, which waits for the word that all is well.
const ntttcpDetachedVariable = "FULLBORE_NTTTCP_DETACHED"

// parentPipe is how the background half talks to the one that the user started, until it is
// ready. The methods of nil do nothing.
type parentPipe struct{ w *os.File }

// readyByte cannot begin a message.
const readyByte = 1

// parent is the way to the parent; nil = this process is not the background half.
func (e *env) parent() *parentPipe {
	if !e.IsProcess || e.Getenv(ntttcpDetachedVariable) == "" {
		return nil
	}
	return &parentPipe{os.NewFile(3, "parent")}
}

// say tells why the program in the background ends.
func (p *parentPipe) say(text string) {
	if p == nil || p.w == nil {
		return
	}
	_, _ = io.WriteString(p.w, text+"\n") // a parent that is gone does not listen
}

// ready lets the parent end.
func (p *parentPipe) ready() {
	if p == nil || p.w == nil {
		return
	}
	_, _ = p.w.Write([]byte{readyByte})
	_ = p.w.Close()
	p.w = nil
}

// detach starts the background half and ends this one: at once for a sender, when its ports are
// open for a receiver, so that one that is taken is seen.
func (n *ntttcpRun) detach() int {
	cannot := func(err error) int {
		n.fault(fmt.Sprintf("main: cannot run this tool in the background: %v", err))
		return exitBroken
	}
	exe, err := n.Executable()
	if err != nil {
		return cannot(err)
	}
	ready, w, err := os.Pipe()
	if err != nil {
		return cannot(err)
	}
	defer ready.Close()
	argv := append([]string{n.argv0}, n.args...) // the personality, whatever this program is called
	pid, err := process.Detach(exe, argv, []*os.File{w}, ntttcpDetachedVariable+"=1")
	_ = w.Close()
	if err != nil {
		return cannot(err)
	}
	said, _ := io.ReadAll(io.LimitReader(ready, 64<<10))
	switch {
	case len(said) > 0 && said[0] == readyByte:
		return 0
	case len(said) > 0:
		n.log = nil // it has the line already
		n.fault(strings.TrimSuffix(string(said), "\n"))
		return n.listenCode()
	}
	n.fault(fmt.Sprintf("the program in the background ended at once (process %d)", pid))
	return exitBroken
}
