package ext

import (
	"cmp"
	"fmt"
	"slices"
	"unicode"

	"github.com/fullbore-net/fullbore/result"
)

// An event carries at most MaxEventStreams streams over the wire; of more only the worst
// WorstStreams and the sums (design §5).
const (
	MaxEventStreams = 128
	WorstStreams    = 16
)

// ForWire is ev as it is sent to the other end.
func ForWire(ev result.Event) result.Event {
	if ev.Interval == nil || len(ev.Interval.Streams) <= MaxEventStreams {
		return ev
	}
	row := *ev.Interval
	worst := slices.Clone(row.Streams)
	slices.SortStableFunc(worst, func(a, b result.StreamInterval) int { return cmp.Compare(a.Bytes, b.Bytes) })
	worst = worst[:WorstStreams]
	slices.SortStableFunc(worst, func(a, b result.StreamInterval) int { return cmp.Compare(a.ID, b.ID) })
	row.Streams = worst
	ev.Interval = &row
	return ev
}

// FromWire checks an event of the other end and makes it safe to show; false = no use.
func FromWire(ev *result.Event, from result.End) (result.Event, bool) {
	if ev == nil {
		return result.Event{}, false
	}
	out := result.Event{Kind: ev.Kind, End: from, Seq: ev.Seq, T: ev.T}
	switch {
	case ev.Kind == result.KindInterval && ev.Interval != nil && len(ev.Interval.Streams) <= MaxEventStreams:
		row := *ev.Interval
		row.End = from
		out.Interval = &row
	case ev.Kind == result.KindNotice && ev.Notice != nil:
		n := *ev.Notice
		n.End, n.Code, n.Text, n.Fix = from, Printable(n.Code), Printable(n.Text), Printable(n.Fix)
		out.Notice = &n
	case ev.Kind == result.KindHost && ev.Host != nil:
		out.Host = PrintableHost(ev.Host)
	default:
		return out, false
	}
	return out, true
}

// maxPrintable is how many characters of a stranger's text are kept.
const maxPrintable = 1000

// Printable takes control characters out of a stranger's text, which may end on a terminal.
func Printable(s string) string {
	out := []rune(s)
	out = slices.DeleteFunc(out, func(r rune) bool { return !unicode.IsPrint(r) })
	return string(out[:min(len(out), maxPrintable)])
}

// PrintableHost is h with all its texts printable.
func PrintableHost(h *result.Host) *result.Host {
	out := *h
	for _, s := range []*string{&out.Name, &out.OS, &out.Release, &out.SystemInfo, &out.CPUModel, &out.Virtual, &out.Clock} {
		*s = Printable(*s)
	}
	if h.Tool != nil {
		out.Tool = &result.Tool{Name: Printable(h.Tool.Name), Version: Printable(h.Tool.Version)}
	}
	if h.NIC != nil {
		nic := *h.NIC
		for _, s := range []*string{&nic.Name, &nic.Driver, &nic.Firmware, &nic.Model, &nic.Duplex} {
			*s = Printable(*s)
		}
		out.NIC = &nic
	}
	if h.Settings != nil {
		out.Settings = printableFacts(h.Settings)
	}
	return &out
}

// mostNames bounds a list of names that came from elsewhere.
const mostNames = 64

// printableFacts is f with all its texts printable.
func printableFacts(f *result.Facts) *result.Facts {
	out := *f
	for _, s := range []*string{
		&out.OS, &out.Congestion, &out.Autotuning, &out.Kind, &out.Governor, &out.NIC, &out.Driver, &out.Duplex, &out.NearCPUs,
		&out.Qdisc, &out.Virtual, &out.ClockSource,
	} {
		*s = Printable(*s)
	}
	for _, list := range []*[]string{&out.Available, &out.Off} {
		names := slices.Clone((*list)[:min(len(*list), mostNames)])
		for i := range names {
			names[i] = Printable(names[i])
		}
		*list = names
	}
	return &out
}

// VersionNotice says that the two ends run different releases; nil = they do not.
func VersionNotice(theirs string, own result.Tool) *result.Notice {
	if theirs == own.Version {
		return nil
	}
	return &result.Notice{
		Code: "version-differs", Level: result.Info,
		Text: fmt.Sprintf("the other end runs fullbore %s, this one %s", theirs, own.Version),
	}
}

// DroppedNotice says that n events of the end that reports call whose ("the server's") did not
// come; nil = all came.
func DroppedNotice(from result.End, whose string, n int64) *result.Notice {
	if n <= 0 {
		return nil
	}
	return &result.Notice{
		Code: "events-dropped", End: from, Level: result.Info,
		Text: fmt.Sprintf("%d of %s live reports were left out, because the control connection was slow; totals are complete", n, whose),
	}
}
