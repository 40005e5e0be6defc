// Package recipes is what articles tell people to type about NTTTCP, as data, and a player that
// runs both sides of a recipe in a network namespace and checks what they print. A side can be
// any program that takes the words: this program in either dialect, its Windows build under Wine,
// or the original.
package recipes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// Addresses of the recipes: those that the machine of a Space has, and one that it has not.
const (
	Own    = "10.0.0.5"
	Azure  = "10.0.0.4"
	Blog   = "198.51.100.9"
	Absent = "10.0.0.9" // the peer's, given to a receiver
)

// Line is one command line: the words behind the program's name, as an article prints them.
type Line struct {
	Dialect plan.NTTTCPDialect // whose program it is for
	Words   string
}

// linux and windows make lines.
func linux(words string) Line   { return Line{plan.NTTTCPLinux, words} }
func windows(words string) Line { return Line{plan.NTTTCPWindows, words} }

// Recipe is two command lines that belong together.
type Recipe struct {
	ID               string // row of the table: N1 … N11, A1 … of Azure's page
	Note             string // what is told apart within the row
	Receiver, Sender Line
	Streams          int  // connections, or flows of datagrams
	UDP              bool //
	Bytes            int64
	// ReceiverSays and SenderSays are parts of lines that stderr must have, and has no others.
	ReceiverSays, SenderSays []string
	// MaySay are lines that depend on the machine.
	MaySay []string
	// Warm: a warm-up is not counted, so each end counts its own stretch of the traffic.
	Warm bool
	// Interrupt ends that side by Ctrl-C as soon as both show that payload flows; the other then
	// ends by itself, with SenderExit where the sender is left alone. The lines run as they stand.
	// "" = nobody is interrupted.
	Interrupt  plan.NTTTCPRole
	SenderExit int
	// Unsynced: nothing is agreed, the ends run for their own times.
	Unsynced bool
	// PlainWire: the ends do not know each other for what they are, as with a real ntttcp.
	PlainWire bool
	// Files are written by both ends.
	Files []string
	// Serve: the sender's line also does its work against a receiver for all, `fullbore serve`.
	Serve bool
	// Originals: the originals carry it through as well, each in its role.
	Originals bool
}

// Name is for test names.
func (r Recipe) Name() string {
	if r.Note == "" {
		return r.ID
	}
	return r.ID + " " + r.Note
}

// Lines of stderr that recipes share.
const (
	saysPinned  = "the second field puts all of it on CPU 0"
	saysAsLinux = "ntttcp.exe refuses this line; it is read as one of NTTTCP for Linux"
	saysOwn     = Absent + " is not an address of this machine: listening on all of its own"
	saysUDP     = "-u without -b: datagrams of 65507 bytes, which the path cuts to pieces"
	saysSync    = "synchronising is the default"
	saysBase    = "-P is -p here: the first data port is "
)

// All are the recipes.
func All() []Recipe { return slices.Concat(basic(), words(), azure(), others()) }

// others are lines of operations handbooks, and Microsoft's own advice for fast links.
func others() []Recipe {
	overlaps := []string{"-a: calls that overlap"}
	return []Recipe{
		{ID: "S1", Receiver: linux("-r -P 8 -t 30"), Sender: linux("-s 10.0.0.5 -P 8 -t 30"), Streams: 32, Serve: true, Originals: true},
		{ID: "S1", Note: "UDP", Receiver: linux("-r -u"), Sender: linux("-s 10.0.0.5 -u"), Streams: 64, UDP: true, SenderSays: []string{saysUDP}, Serve: true},
		{ID: "S2", Receiver: windows("-r -m 8,*,10.0.0.5 -t 60"), Sender: windows("-s -m 8,*,10.0.0.5 -t 60"), Streams: 8, Serve: true, Originals: true},
		{
			ID: "M1", Receiver: windows("-r -m 8,*,10.0.0.5 -a 6 -rb 2M -t 15"), Sender: windows("-s -m 8,*,10.0.0.5 -a 2 -t 15"), Streams: 8, Serve: true,
			ReceiverSays: overlaps, SenderSays: overlaps,
		},
	}
}

// basic are rows N1 to N10.
func basic() []Recipe {
	says := func(s ...string) []string { return s }
	pinned := says(saysPinned)
	return []Recipe{
		{ID: "N1", Receiver: linux("-r"), Sender: linux("-s"), Streams: 64, Interrupt: plan.NTTTCPSender, Serve: true, Originals: true},
		{ID: "N1", Note: "the receiver interrupted", Receiver: linux("-r"), Sender: linux("-s"), Streams: 64, Interrupt: plan.NTTTCPReceiver, SenderExit: 6},
		{
			ID: "N1", Note: "typed on Windows", Receiver: windows("-r"), Sender: windows("-s"), Streams: 64, Interrupt: plan.NTTTCPSender, Serve: true,
			ReceiverSays: says(saysAsLinux), SenderSays: says(saysAsLinux),
		},
		{ID: "N2", Receiver: linux("-r " + Blog), Sender: linux("-s " + Blog), Streams: 64, Serve: true, Originals: true},
		{
			ID: "N2", Note: "typed on Windows", Receiver: windows("-r " + Blog), Sender: windows("-s " + Blog), Streams: 64, Serve: true,
			ReceiverSays: says(saysAsLinux), SenderSays: says(saysAsLinux),
		},
		{
			ID: "N3", Receiver: linux("-r -m 1,0,10.0.0.5 -P 8 -t 60"), Sender: linux("-s -m 1,0,10.0.0.5 -P 8 -t 60"), Streams: 8,
			ReceiverSays: pinned, SenderSays: pinned, Serve: true, Originals: true,
		},
		{
			ID: "N3", Note: "typed on Windows", Receiver: windows("-r -m 1,0,10.0.0.5 -P 8 -t 60"), Sender: windows("-s -m 1,0,10.0.0.5 -P 8 -t 60"), Streams: 1,
			ReceiverSays: says(saysBase + "8; for 8 streams give -m 8,*,10.0.0.5; Linux senders"), SenderSays: says(saysBase + "8; for 8 streams give -m 8,*,10.0.0.5"), Originals: true,
		},
		{
			ID: "N4", Receiver: linux("-r -u -m 1,0,10.0.0.5 -P 4 -t 30"), Sender: linux("-s -u -m 1,0,10.0.0.5 -P 4 -t 30"), Streams: 4, UDP: true,
			ReceiverSays: pinned, SenderSays: says(saysUDP, saysPinned), Serve: true, Originals: true,
		},
		{ID: "N5", Receiver: windows("-r -m 1,0,10.0.0.5 -t 30"), Sender: linux("-s -m 1,0,10.0.0.5 -t 30"), Streams: 1, Serve: true},
		{
			ID: "N6", Receiver: windows("-r -m 1,0,10.0.0.5 -P 8 -t 30"), Sender: linux("-s -m 1,0,10.0.0.5 -P 8 -t 30"), Streams: 8,
			ReceiverSays: says(saysBase + "8; for 8 streams give -m 8,*,10.0.0.5; Linux senders with -P 8 are served too, at ports 5001 to 5008"),
			SenderSays:   pinned, Serve: true,
		},
		{
			ID: "N7", Receiver: windows("-r -u -m 1,0,10.0.0.5 -P 8 -t 30"), Sender: linux("-s -u -m 1,0,10.0.0.5 -P 8 -t 30"), Streams: 8, UDP: true,
			ReceiverSays: says(saysBase + "8; for 8 streams give -m 8,*,10.0.0.5; Linux senders with -P 8 are served too, at ports 5001 to 5008"),
			SenderSays:   says(saysUDP, saysPinned), Serve: true,
		},
		{ID: "N8", Note: "trial", Receiver: linux("-r -m 4,*,10.0.0.5 -P 1 -t 10"), Sender: linux("-s -m 4,*,10.0.0.5 -P 1 -t 10"), Streams: 1, Serve: true, Originals: true},
		{ID: "N8", Receiver: linux("-r -m 4,*,10.0.0.5 -t 300"), Sender: linux("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4, Serve: true, Originals: true},
		{
			ID: "N8", Note: "trial on Windows", Receiver: windows("-r -m 4,*,10.0.0.5 -P 1 -t 10"), Sender: windows("-s -m 4,*,10.0.0.5 -P 1 -t 10"), Streams: 4, Originals: true,
			ReceiverSays: says(saysBase + "1; for 1 streams give -m 1,*,10.0.0.5"), SenderSays: says(saysBase + "1; for 1 streams give -m 1,*,10.0.0.5"),
		},
		{ID: "N8", Note: "on Windows", Receiver: windows("-r -m 4,*,10.0.0.5 -t 300"), Sender: windows("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4, Serve: true, Originals: true},
		{ID: "N8", Note: "to Windows", Receiver: windows("-r -m 4,*,10.0.0.5 -t 300"), Sender: linux("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4, Serve: true},
		{ID: "N8", Note: "from Windows", Receiver: linux("-r -m 4,*,10.0.0.5 -t 300"), Sender: windows("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4, Serve: true},
		{
			ID: "N9", Receiver: windows("-r -m 4,*,10.0.0.9 -t 300"), Sender: linux("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4,
			ReceiverSays: says(saysOwn),
		},
		{
			ID: "N9", Note: "a Linux receiver", Receiver: linux("-r -m 4,*,10.0.0.9 -t 300"), Sender: windows("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4,
			ReceiverSays: says(saysOwn),
		},
		{ID: "N10", Receiver: linux("-r"), Sender: windows("-s -m 4,*,10.0.0.5 -ns -t 300"), Streams: 4, Unsynced: true, Serve: true},
		{ID: "N10", Note: "-N too", Receiver: linux("-r -N"), Sender: windows("-s -m 4,*,10.0.0.5 -ns -t 300"), Streams: 4, Unsynced: true},
		{ID: "N10", Note: "neither", Receiver: linux("-r"), Sender: windows("-s -m 4,*,10.0.0.5 -t 300"), Streams: 4},
		{ID: "N10", Note: "-N alone", Receiver: linux("-r -N"), Sender: linux("-s -m 4,*,10.0.0.5 -N -t 300"), Streams: 4, Unsynced: true, Serve: true},
	}
}

// words are row N11: single words, in both dialects.
func words() []Recipe {
	says := func(s ...string) []string { return s }
	const lr, ls, wr, ws = "-r -m 2,*,10.0.0.5 -t 9", "-s -m 2,*,10.0.0.5 -t 9", "-r -m 2,*,10.0.0.5 -t 9", "-s -m 2,*,10.0.0.5 -t 9"
	twice := func(s string) ([]string, []string) { return says(s), says(s) }
	r := []Recipe{
		{
			ID: "N11", Note: "-rb -sb", Receiver: linux(lr + " -rb 1M -sb 1M"), Sender: linux(ls + " -rb 1M -sb 1M"), Streams: 2, Serve: true,
			ReceiverSays: says("SO_RCVBUF is 1048576 bytes", "SO_SNDBUF is 1048576 bytes"), SenderSays: says("SO_RCVBUF is 1048576 bytes", "SO_SNDBUF is 1048576 bytes"),
		},
		{ID: "N11", Note: "-rb -sb on Windows", Receiver: windows(wr + " -rb 1M -sb 1M"), Sender: windows(ws + " -rb 1M -sb 1M"), Streams: 2, Serve: true, Originals: true},
		{
			ID: "N11", Note: "-l", Receiver: linux(lr), Sender: linux(ls + " -l 64K"), Streams: 2, Serve: true,
			SenderSays: says("here it is -b: 65536 bytes per call"),
		},
		// 2 threads of 300 calls of 64 KiB each, exactly.
		{ID: "N11", Note: "-l by count on Windows", Receiver: windows("-r -m 2,*,10.0.0.5 -n 300 -l 64K -wa"), Sender: windows("-s -m 2,*,10.0.0.5 -n 300 -l 64K"), Streams: 2, Bytes: 2 * 300 * 64 << 10, Serve: true, Originals: true},
		{
			ID: "N11", Note: "-xml", Receiver: linux(lr + " -xml result.xml"), Sender: linux(ls + " -xml result.xml"), Streams: 2, Files: []string{"result.xml"}, Serve: true,
			ReceiverSays: says("the XML result goes to result.xml"), SenderSays: says("the XML result goes to result.xml"),
		},
		{ID: "N11", Note: "-xml on Windows", Receiver: windows(wr + " -xml result.xml"), Sender: windows(ws + " -xml result.xml"), Streams: 2, Files: []string{"result.xml"}, Serve: true, Originals: true},
		{ID: "N11", Note: "-m 1", Receiver: linux("-r -m 1"), Sender: linux("-s 10.0.0.5 -m 1"), Streams: 1, Serve: true, Originals: true},
		{ID: "N11", Note: "-m 1 on Windows", Receiver: windows(wr + " -m 1"), Sender: windows(ws + " -m 1"), Streams: 2, Serve: true},
		{ID: "N11", Note: "-sync", Receiver: linux(lr + " -sync"), Sender: linux(ls + " -sync"), Streams: 2, Serve: true},
		{ID: "N11", Note: "-sync on Windows", Receiver: windows(wr + " -sync"), Sender: windows(ws + " -sync"), Streams: 2, Serve: true},
		{ID: "N11", Note: "-W", Receiver: linux(lr + " -W 2"), Sender: linux(ls + " -W 2"), Streams: 2, Warm: true, Serve: true, Originals: true},
		{ID: "N11", Note: "-W 2 on Windows", Receiver: windows(wr + " -W 2"), Sender: windows(ws + " -W 2"), Streams: 2, Serve: true},
		{ID: "N11", Note: "-W 4 on Windows", Receiver: windows(wr + " -W 4"), Sender: windows(ws + " -W 4"), Streams: 2, Serve: true},
	}
	clamped := says("ntttcp: warning: socket buffers of ")
	for i := range r {
		switch r[i].Note {
		case "-m 1 on Windows":
			r[i].ReceiverSays, r[i].SenderSays = twice("a line of throughput each second")
		case "-sync", "-sync on Windows":
			r[i].ReceiverSays, r[i].SenderSays = twice(saysSync)
		case "-W 2 on Windows":
			r[i].ReceiverSays, r[i].SenderSays = twice("socket buffers of 2 times")
			r[i].MaySay = clamped
		case "-W 4 on Windows":
			r[i].ReceiverSays, r[i].SenderSays = twice("socket buffers of 4 times")
			r[i].MaySay = clamped
		}
	}
	return r
}

// azure is what Azure's page says ("Test VM network throughput by using NTTTCP"), in its versions
// of 2020 and 2023.
func azure() []Recipe {
	says := func(s ...string) []string { return s }
	return []Recipe{
		{ID: "A1", Receiver: linux("-r -t 10 -P 1"), Sender: linux("-s10.0.0.4 -t 10 -n 1 -P 1"), Streams: 1, Serve: true, Originals: true},
		{
			ID: "A1", Note: "typed on Windows", Receiver: windows("-r -t 10 -P 1"), Sender: windows("-s10.0.0.4 -t 10 -n 1 -P 1"), Streams: 1, Serve: true,
			ReceiverSays: says(saysAsLinux), SenderSays: says(saysAsLinux),
		},
		{ID: "A2", Receiver: windows("-r -m 8,*,10.0.0.4 -t 300"), Sender: windows("-s -m 8,*,10.0.0.4 -t 300"), Streams: 8, Serve: true, Originals: true},
		{
			ID: "A2", Note: "dashes of a web page", Receiver: windows("-r –m 8,*,10.0.0.4 -t 300"), Sender: windows("-s –m 8,*,10.0.0.4 -t 300"), Streams: 8, Serve: true,
			ReceiverSays: says("–m: read as -m"), SenderSays: says("–m: read as -m"),
		},
		{ID: "A3", Receiver: linux("-r -t 300"), Sender: linux("-s10.0.0.4 -t 300"), Streams: 64, Serve: true, Originals: true},
		{ID: "A4", Note: "Linux to Windows", Receiver: windows("-r -m 8,*,10.0.0.4"), Sender: linux("-s -m 8,*,10.0.0.4 -N -t 300"), Streams: 8, Unsynced: true, Serve: true},
		{ID: "A4", Note: "Windows to Linux", Receiver: linux("-r -m 8,*,10.0.0.4"), Sender: windows("-s -m 8,*,10.0.0.4 -ns -t 300"), Streams: 8, Unsynced: true, Serve: true},
		{ID: "A5", Receiver: windows("-r -m 8,*,10.0.0.9 -t 300"), Sender: linux("-s -m 8,*,10.0.0.4 -N -t 300"), Streams: 8, Unsynced: true, ReceiverSays: says(saysOwn)},
	}
}

// Short is the line with a time of that many seconds at most. One that says no time gets it, so
// that it need not run for the default of its program; not one that counts calls.
func (l Line) Short(seconds int) Line {
	words := strings.Fields(l.Words)
	timed := false
	for i, w := range words {
		if !strings.EqualFold(w, "-t") || i+1 == len(words) {
			continue
		}
		timed = true
		if n, err := strconv.Atoi(words[i+1]); err == nil && n > seconds {
			words[i+1] = strconv.Itoa(seconds)
		}
	}
	if inv, err := l.Plan(); !timed && err == nil && inv.Plan.NTTTCP.Buffers == 0 {
		words = append(words, "-t", strconv.Itoa(seconds))
	}
	return Line{l.Dialect, strings.Join(words, " ")}
}

// Plan is how this program reads the line on a machine that has the addresses of a Space.
func (l Line) Plan() (*compat.Invocation, error) {
	inv, exit := compat.Parse("ntttcp", append([]string{"--dialect", string(l.Dialect)}, strings.Fields(l.Words)...), compat.World{
		CPUs: 1 << 10, Admin: true, Local: func(host string) bool { return host != Absent },
	})
	if exit != nil {
		return nil, fmt.Errorf("ntttcp %s, as %s: exit %d: %s%s", l.Words, l.Dialect, exit.Code, exit.Stderr, exit.Stdout)
	}
	return inv, nil
}
