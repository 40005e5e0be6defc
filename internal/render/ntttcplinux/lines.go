package ntttcplinux

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// The levels of a line, with the blank that makes them equally long.
const (
	info   = "INFO"
	failed = "ERR "
	debug  = "DBG "
)

// words is what is printed about a milestone, "" = nothing.
func (r *Renderer) words(m *result.Milestone) (level, text string) {
	switch m.Code {
	case result.MilestoneLine:
		switch m.Severity {
		case "error":
			return failed, clean(m.Text)
		case "debug":
			return debug, clean(m.Text)
		}
		return info, clean(m.Text)
	case result.MilestoneListening:
		return debug, "ntttcp server is listening on " + addr(m.Local)
	case result.MilestoneSync:
		return debug, r.connection("Sync connection", m)
	case result.MilestoneConnection:
		return debug, r.connection("New connection", m)
	case result.MilestoneClosed:
		return debug, fmt.Sprintf("socket closed: %d", m.Socket)
	}
	return info, r.progress(m)
}

// progress is what everybody sees of a run's course.
func (r *Renderer) progress(m *result.Milestone) string {
	switch m.Code {
	case result.MilestoneThreads:
		return fmt.Sprintf("%d threads created", m.Count)
	case result.MilestoneConnected:
		if !r.o.Release.since(R140Tag) {
			return ""
		}
		return fmt.Sprintf("%d connections created in %d microseconds", m.Count, m.Micros)
	case result.MilestoneCycle:
		if m.Count == 0 {
			return "test is negotiated to run with continuous mode"
		}
		return fmt.Sprintf("Test cycle time negotiated is: %d seconds", m.Count)
	case result.MilestoneNoSync:
		return "Starting sender activity (no sync) ..."
	case result.MilestoneWaiting:
		return "waiting for the last client to join the test"
	case result.MilestoneStarted:
		return "Network activity progressing..."
	case result.MilestoneWarmedUp:
		return "Test warmup completed."
	case result.MilestoneMeasured:
		return "Test run completed."
	case result.MilestoneCooling:
		return "Test cooldown is in progress..."
	case result.MilestoneCycleOver:
		return "Test cycle finished."
	case result.MilestonePeerDone:
		return "receiver exited from current test"
	case result.MilestonePeerLeft:
		return "test exited because sender side was interrupted"
	case result.MilestoneInterrupt:
		return "Interrupted by Ctrl+C"
	case result.MilestoneNoResult:
		return "Test was interrupted."
	case result.MilestoneBound:
		return "main: set cpu affinity"
	}
	return ""
}

// connection names a connection: a sender its own port first, a receiver the peer.
func (r *Renderer) connection(what string, m *result.Milestone) string {
	var port int
	if m.Local != nil {
		port = m.Local.Port
	}
	if r.run.End == result.Client {
		if r.run.Test.Transport == "udp" && m.Code == result.MilestoneConnection {
			what = "Running UDP stream"
		}
		return fmt.Sprintf("%s: local:%d [socket:%d] --> %s", what, port, m.Socket, addr(m.Remote))
	}
	return fmt.Sprintf("%s: %s --> local:%d [socket %d]", what, addr(m.Remote), port, m.Socket)
}

// addr is an address as NTTTCP prints it: without brackets.
func addr(a *result.Addr) string {
	if a == nil {
		return "?"
	}
	return fmt.Sprintf("%s:%d", a.Host, a.Port)
}
