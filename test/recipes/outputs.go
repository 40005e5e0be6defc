package recipes

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// End is what a side of a recipe has left.
type End struct {
	Role           plan.NTTTCPRole
	Line           Line
	Layout         plan.NTTTCPDialect // of its output; a line can be read as the other dialect's
	Exit           int
	Stdout, Stderr string
	Dir            string // where it ran
}

func (e *End) String() string {
	return fmt.Sprintf("%s (ntttcp %s): exit %d\n%s\nstderr: %s", e.Role, e.Line.Words, e.Exit, e.Stdout, e.Stderr)
}

// Totals are figures of an output.
type Totals struct {
	Bytes   float64 // payload; exact within Rounding
	Streams int     // sender of Linux: connections; Windows: rows of threads; -1 = it does not say
}

// Rounding is by how many bytes figures in millions may differ from the count.
const Rounding = 1.1

var (
	linuxTotal       = regexp.MustCompile(`(?m) INFO: total bytes\t:(\d+)$`)
	linuxConnections = regexp.MustCompile(`(?m) INFO: (\d+) connections tested$`)
	windowsTotal     = regexp.MustCompile(`(?m)^   Bytes\(MEG\)    realtime\(s\) Avg Frame Size Throughput\(MB/s\)\n[= ]+\n *(\d+\.\d{6}) `)
	windowsThread    = regexp.MustCompile(`(?m)^ *\d+ +\d+\.\d{3} +(\d+\.\d{3}) +\d+\.\d{3}(?:(?: +\d+){3})?$`) // with the three of latency
)

// Totals reads the end's console, or the XML of one that prints no tables.
func (e *End) Totals() (Totals, error) {
	out := strings.ReplaceAll(e.Stdout, "\r\n", "\n")
	if e.Layout == plan.NTTTCPLinux {
		m := linuxTotal.FindAllStringSubmatch(out, -1)
		if len(m) != 1 {
			return Totals{}, fmt.Errorf("%d lines of total bytes", len(m))
		}
		t := Totals{Streams: -1}
		t.Bytes, _ = strconv.ParseFloat(m[0][1], 64)
		if m := linuxConnections.FindStringSubmatch(out); m != nil {
			t.Streams, _ = strconv.Atoi(m[1])
		}
		return t, nil
	}
	m := windowsTotal.FindStringSubmatch(out)
	if m == nil {
		d, err := e.XML("result.xml")
		if err != nil {
			return Totals{}, fmt.Errorf("no tables, and %w", err)
		}
		return Totals{d.bytes(), len(d.Threads)}, nil
	}
	mega, _ := strconv.ParseFloat(m[1], 64)
	return Totals{mega * (1 << 20), len(windowsThread.FindAllString(out, -1))}, nil
}

// Document is a result in XML, as far as it is looked at.
type Document struct {
	XMLName xml.Name
	Version string `xml:"version,attr"`
	Threads []struct {
		Index int `xml:"index,attr"`
	} `xml:"thread"`
	Total struct {
		Metric string  `xml:"metric,attr"`
		MB     float64 `xml:",chardata"`
	} `xml:"total_bytes"`
}

// bytes: Linux counts millions, Windows mebibytes.
func (d *Document) bytes() float64 {
	if strings.Contains(d.Version, "linux") {
		return d.Total.MB * 1e6
	}
	return d.Total.MB * (1 << 20)
}

// XML reads a result that the end has written, which must be one document.
func (e *End) XML(name string) (*Document, error) {
	data, err := os.ReadFile(filepath.Join(e.Dir, name))
	if err != nil {
		return nil, err
	}
	d := &Document{}
	dec := xml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) && strings.TrimSpace(string(data[dec.InputOffset():])) != "" {
		return nil, fmt.Errorf("%s: more than one document", name)
	}
	return d, nil
}

var (
	otherLinux   = regexp.MustCompile(`(?m)^fullbore: (sender|receiver): (\d+) bytes in `)
	otherWindows = regexp.MustCompile(`(?m)^fullbore: (sender|receiver): (\d+\.\d{6}) MB in `)
	datagrams    = regexp.MustCompile(`(?m)^fullbore: datagrams: (\d+) sent, (\d+) received, (-?\d+) lost \(`)
)

// Other is what a fullbore prints, below the original's lines, of the other end's count.
func (e *End) Other() (role plan.NTTTCPRole, bytes float64, ok bool) {
	out := strings.ReplaceAll(e.Stdout, "\r\n", "\n")
	if m := otherLinux.FindStringSubmatch(out); m != nil {
		bytes, _ = strconv.ParseFloat(m[2], 64)
		return plan.NTTTCPRole(m[1]), bytes, true
	}
	if m := otherWindows.FindStringSubmatch(out); m != nil {
		bytes, _ = strconv.ParseFloat(m[2], 64)
		return plan.NTTTCPRole(m[1]), bytes * (1 << 20), true
	}
	return "", 0, false
}

// Datagrams is the account of both ends that a fullbore prints.
func (e *End) Datagrams() (sent, received, lost int64, ok bool) {
	m := datagrams.FindStringSubmatch(strings.ReplaceAll(e.Stdout, "\r\n", "\n"))
	if m == nil {
		return 0, 0, 0, false
	}
	sent, _ = strconv.ParseInt(m[1], 10, 64)
	received, _ = strconv.ParseInt(m[2], 10, 64)
	lost, _ = strconv.ParseInt(m[3], 10, 64)
	return sent, received, lost, true
}

// same: two figures of one count.
func same(a, b float64) bool { return math.Abs(a-b) <= 2*Rounding }

// Check compares what both ends left with what the recipe must give. original says which of them
// are not ours.
func (r Recipe) Check(receiver, sender *End, original map[plan.NTTTCPRole]bool) error {
	ours := func(e *End) bool { return !original[e.Role] }
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	var totals [2]Totals
	for i, e := range []*End{receiver, sender} {
		want := 0
		if e.Role == plan.NTTTCPSender {
			want = r.SenderExit
		}
		bad(e.Exit != want, "%s: exit %d, want %d", e.Role, e.Exit, want)
		t, err := e.Totals()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Role, err))
			continue
		}
		totals[i] = t
		bad(t.Bytes <= 0, "%s: %.0f bytes", e.Role, t.Bytes)
		bad(r.Bytes > 0 && !same(t.Bytes, float64(r.Bytes)), "%s: %.0f bytes, want %d", e.Role, t.Bytes, r.Bytes)
		bad(t.Streams >= 0 && t.Streams != r.Streams, "%s: %d streams, want %d", e.Role, t.Streams, r.Streams)
		for _, name := range r.Files {
			d, err := e.XML(name)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", e.Role, err))
				continue
			}
			bad(d.XMLName.Local != map[plan.NTTTCPRole]string{plan.NTTTCPReceiver: "ntttcpr", plan.NTTTCPSender: "ntttcps"}[e.Role], "%s: %s: root %s", e.Role, name, d.XMLName.Local)
			bad(!same(d.bytes(), t.Bytes), "%s: %s: %.0f bytes, the console %.0f", e.Role, name, d.bytes(), t.Bytes)
		}
	}
	// The original forgets a call that its end cut off (its issue 77).
	bad(ours(sender) && !r.Warm && totals[0].Bytes > totals[1].Bytes+2*Rounding, "the receiver has %.0f bytes, the sender sent %.0f", totals[0].Bytes, totals[1].Bytes)
	if ours(receiver) && ours(sender) && !r.Unsynced && !r.PlainWire {
		errs = append(errs, r.checkShared(receiver, sender, totals)...)
	}
	return errors.Join(errs...)
}

// checkShared: what each end says of the other is what that one says of itself.
func (r Recipe) checkShared(receiver, sender *End, totals [2]Totals) (errs []error) {
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for i, e := range []*End{receiver, sender} {
		if e.Layout == plan.NTTTCPWindows && len(r.Files) > 0 {
			continue // it prints nothing
		}
		other, bytes, ok := e.Other()
		bad(!ok, "%s: nothing of the other end", e.Role)
		bad(ok && other == e.Role, "%s: calls the other end %s", e.Role, other)
		bad(ok && !same(bytes, totals[1-i].Bytes), "%s: the other end has %.0f bytes, which says %.0f itself", e.Role, bytes, totals[1-i].Bytes)
		if !r.UDP {
			continue
		}
		sent, received, lost, ok := e.Datagrams()
		size := float64(plan.MaxUDPBlock)
		bad(!ok, "%s: no account of datagrams", e.Role)
		bad(ok && lost != sent-received, "%s: %d sent, %d received, %d lost", e.Role, sent, received, lost)
		bad(ok && !same(float64(sent)*size, totals[1].Bytes), "%s: %d datagrams sent are not %.0f bytes", e.Role, sent, totals[1].Bytes)
		bad(ok && float64(received)*size < totals[0].Bytes-2*Rounding, "%s: %d datagrams received are less than %.0f bytes", e.Role, received, totals[0].Bytes)
	}
	return errs
}

// CheckNotes compares stderr of this program with the lines that the recipe promises: those, and
// where nothing is agreed what the ends found out about each other's times.
func (r Recipe) CheckNotes(e *End) error {
	want := r.SenderSays
	if e.Role == plan.NTTTCPReceiver {
		want = r.ReceiverSays
	}
	if r.UDP {
		what := map[plan.NTTTCPRole]string{plan.NTTTCPReceiver: "the result is what was received here", plan.NTTTCPSender: "this end's figures are the load that was offered"}
		want = append(slices.Clone(want), what[e.Role])
	}
	var errs []error
	for _, w := range want {
		if !strings.Contains(e.Stderr, w) {
			errs = append(errs, fmt.Errorf("%s: stderr does not say %q: %q", e.Role, w, e.Stderr))
		}
	}
	for l := range strings.Lines(strings.ReplaceAll(e.Stderr, "\r\n", "\n")) {
		known := r.Unsynced && strings.HasPrefix(l, "ntttcp: warning: ")
		for _, w := range slices.Concat(r.MaySay, want) {
			known = known || strings.Contains(l, w)
		}
		if !known || !strings.HasPrefix(l, "ntttcp: ") {
			errs = append(errs, fmt.Errorf("%s: stderr says %q", e.Role, l))
		}
	}
	return errors.Join(errs...)
}
