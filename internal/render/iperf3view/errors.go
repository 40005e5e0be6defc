package iperf3view

import "github.com/fullbore-net/fullbore/result"

// Numbers of iperf3's error table (src/iperf_api.h) that decide how an error is shown.
const (
	controlClosed    = 109 // IECTRLCLOSE
	clientTerminated = 119 // IECLIENTTERM
	serverTerminated = 120 // IESERVERTERM
)

// The texts of those errors and of the one that a server prints bare.
const (
	ClientTerminated = "the client has terminated"
	ServerTerminated = "the server has terminated"
	ClientClosed     = "the client has unexpectedly closed the connection"
)

// Stopped reports whether e is an end on purpose: this end got a signal, or the other
// end said that it stops.
func Stopped(e *result.Error) bool {
	return e.Interrupted || told(e)
}

// told reports whether the other end announced its own end.
func told(e *result.Error) bool {
	return e.Remote && (e.Number == clientTerminated || e.Number == serverTerminated) ||
		e.Text == ClientTerminated || e.Text == ServerTerminated
}

// ErrorText is e as the JSON's "error" says it, on end.
//
// A client says its errors bare and its interrupt with "interrupt - "; a server marks
// both, but for a client that went away (spec iperf3-cli §6.6).
func ErrorText(e *result.Error, end result.End, rel Release) string {
	switch {
	case e.Interrupted:
		return "interrupt - " + interruptText(e, end, rel)
	case end != result.Server || bare(e):
		return e.Text
	}
	return "error - " + e.Text
}

// ErrorLines is e as it is written to the standard error stream, one element a line,
// without the program's name.
func ErrorLines(e *result.Error, end result.End, rel Release) []string {
	switch {
	case e.Interrupted:
		return []string{"interrupt - " + interruptText(e, end, rel)}
	case end == result.Server && bare(e):
		return []string{e.Text}
	case e.Reported && end != result.Server && !rel.Old():
		return []string{"SERVER ERROR - " + e.Text, "error - " + e.Text}
	}
	return []string{"error - " + e.Text}
}

// interruptText says which end stopped and, as releases since 3.19 do, by which signal.
func interruptText(e *result.Error, end result.End, rel Release) string {
	text := ClientTerminated
	if end == result.Server {
		text = ServerTerminated
	}
	if !rel.Old() && e.Signal != "" {
		text += " by signal " + e.Signal
	}
	return text
}

// bare reports whether a server prints e without "error - ".
func bare(e *result.Error) bool {
	return told(e) || e.Remote && e.Number == controlClosed || e.Text == ClientClosed
}
