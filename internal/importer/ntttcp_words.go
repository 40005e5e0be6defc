package importer

import (
	"regexp"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// What ntttcp-for-linux says of a test's course, line by line, as milestones of the run: who connected,
// when counting began, what was agreed on. So nothing that the text says is lost, and it can be
// printed again.

// ntSaid are the lines without numbers.
var ntSaid = map[string]string{
	"Starting sender activity (no sync) ...":          result.MilestoneNoSync,
	"waiting for the last client to join the test":    result.MilestoneWaiting,
	"Network activity progressing...":                 result.MilestoneStarted,
	"Test warmup completed.":                          result.MilestoneWarmedUp,
	"Test run completed.":                             result.MilestoneMeasured,
	"Test cooldown is in progress...":                 result.MilestoneCooling,
	"Test cycle finished.":                            result.MilestoneCycleOver,
	"receiver exited from current test":               result.MilestonePeerDone,
	"test exited because sender side was interrupted": result.MilestonePeerLeft,
	"Interrupted by Ctrl+C":                           result.MilestoneInterrupt,
	"Test was interrupted.":                           result.MilestoneNoResult,
	"main: set cpu affinity":                          result.MilestoneBound,
	"test is negotiated to run with continuous mode":  result.MilestoneCycle,
}

var (
	reNTThreads   = regexp.MustCompile(`^(\d+) threads created$`)
	reNTConnected = regexp.MustCompile(`^(\d+) connections created in (\d+) microseconds$`)
	reNTCycle     = regexp.MustCompile(`^Test cycle time negotiated is: (\d+) seconds$`)
	reNTClosed    = regexp.MustCompile(`^socket closed: (\d+)$`)
	reNTListening = regexp.MustCompile(`^ntttcp server is listening on (\S+):(\d+)$`)
	// A sender names its own port first, a receiver the peer.
	reNTOut = regexp.MustCompile(`^(Sync connection|New connection|Running UDP stream): local:(\d+) \[socket:(\d+)\] --> (\S+):(\d+)$`)
	reNTIn  = regexp.MustCompile(`^(Sync connection|New connection): (\S+):(\d+) --> local:(\d+) \[socket (\d+)\]$`)
	// reNTEarly are the lines of the argument checks, which come before the settings.
	reNTEarly = regexp.MustCompile(`^(Warning! '|the UDP send size is too big|running test in continuous mode)`)
	// reNTSender are lines that only a sender writes.
	reNTSender = regexp.MustCompile(`^(\d+ connections (created in|tested)|Starting sender activity|receiver exited from current test|sender: |failed to connect to receiver|` +
		`failed to do tcp bind|failed to bind socket|(Sync|New) connection: local:|Running UDP stream: )`)
)

// milestoneOf is what a line tells; what is in the program's own words is kept as a line.
func milestoneOf(level, text string) result.Milestone {
	if code, ok := ntSaid[text]; ok {
		return result.Milestone{Code: code}
	}
	if m := reNTThreads.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: result.MilestoneThreads, Count: num64(m[1])}
	}
	if m := reNTConnected.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: result.MilestoneConnected, Count: num64(m[1]), Micros: num64(m[2])}
	}
	if m := reNTCycle.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: result.MilestoneCycle, Count: num64(m[1])}
	}
	if m := reNTClosed.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: result.MilestoneClosed, Socket: num(m[1])}
	}
	if m := reNTListening.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: result.MilestoneListening, Local: &result.Addr{Host: m[1], Port: num(m[2])}}
	}
	if m := reNTOut.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: connectionCode(m[1]), Local: &result.Addr{Port: num(m[2])}, Socket: num(m[3]), Remote: &result.Addr{Host: m[4], Port: num(m[5])}}
	}
	if m := reNTIn.FindStringSubmatch(text); m != nil {
		return result.Milestone{Code: connectionCode(m[1]), Remote: &result.Addr{Host: m[2], Port: num(m[3])}, Local: &result.Addr{Port: num(m[4])}, Socket: num(m[5])}
	}
	severity := map[string]string{"ERR ": "error", "DBG ": "debug"}[level]
	if severity == "" {
		severity = "info"
	}
	return result.Milestone{Code: result.MilestoneLine, Severity: severity, Text: text}
}

func connectionCode(word string) string {
	if strings.HasPrefix(word, "Sync") {
		return result.MilestoneSync
	}
	return result.MilestoneConnection
}

// clockOf reads the time before a line. It has no date: it is put on the first day of the calendar,
// in UTC, which no reader takes for a real one.
func clockOf(s string) time.Time {
	at, err := time.Parse(time.TimeOnly, s)
	if err != nil {
		return time.Time{}
	}
	return time.Date(1, 1, 1, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// tell notes a line of the test's course, with its place among the reports.
func (p *ntText) tell(clock, level, text string) {
	f := p.f
	m := milestoneOf(level, text)
	m.Time = clockOf(clock)
	switch {
	case f.known:
		m.Stage = "after"
	case !p.begun && reNTEarly.MatchString(text):
		m.Stage = "before"
	default:
		p.begun = true
		m.Stage, m.Rows = "run", len(f.reports)
	}
	switch m.Code {
	case result.MilestoneWarmedUp:
		f.warm = len(f.reports)
	case result.MilestoneNoSync:
		f.params["no_sync"] = "True"
	case result.MilestoneCycle:
		seconds := float64(m.Count)
		f.cycle = &seconds
	case result.MilestoneInterrupt:
		if !f.known && f.failed == "" { // else the test was over, and a receiver that stays was ended
			f.interrupted, f.failed = true, text
		}
	}
	if reNTSender.MatchString(text) {
		f.sender, p.sender = true, true
	}
	f.milestones = append(f.milestones, m)
}
