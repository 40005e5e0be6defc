//go:build linux && amd64

package interop

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/test/recipes"
)

// shortened is how long timed sides run, s. A side that waits for the other's end runs longer.
const shortened = 1

// row is a pair of command lines of the interop matrix.
type row struct {
	recipes.Recipe
	seconds int  // 0 = shortened
	exact   bool // what was sent has all been received and counted
	wire    bool // played over the plain wire too
}

// counted is how much a sender of 2 threads sends that counts calls.
const counted, countedBytes = " -n 60 -l 64K", 2 * 60 * 64 << 10

// matrix is the table of what NTTTCP for Windows and for Linux do with each other (the first five,
// of which the originals carry two through; ours, all), and each of the Windows dialect's ways to
// meet.
func matrix() []row {
	win := func(words string) recipes.Line { return recipes.Line{Dialect: plan.NTTTCPWindows, Words: words} }
	lin := func(words string) recipes.Line { return recipes.Line{Dialect: plan.NTTTCPLinux, Words: words} }
	const wr, ws = "-r -m 2,*,10.0.0.5", "-s -m 2,*,10.0.0.5"
	pair := func(name string, receiver, sender recipes.Line) recipes.Recipe {
		return recipes.Recipe{ID: name, Receiver: receiver, Sender: sender, Streams: 2}
	}
	all := []row{
		{pair("Windows -ns to Linux -N", lin("-r -N -m 2,*,10.0.0.5 -t 30"), win(ws+" -ns"+counted)), 30, true, true},
		{pair("Windows -ns to Linux", lin("-r -t 30"), win(ws+" -ns"+counted)), 30, true, true},
		{pair("Windows to Linux", lin("-r -t 30"), win(ws+counted)), 30, true, false},
		{pair("Windows to Linux -t", lin("-r -t 1"), win(ws+" -t 1")), 0, false, true},
		{pair("Linux -N to Windows -ns", win(wr+" -ns -t 30"), lin(ws+" -N -t 1")), 30, true, true},
		{pair("Linux -N to Windows", win(wr+" -t 30"), lin(ws+" -N -t 1")), 30, true, true},
		{pair("Linux to Windows", win(wr+" -t 1"), lin(ws+" -t 1")), 0, false, true},
		{pair("Windows", win(wr+" -wa"+counted), win(ws+counted)), 0, true, false},
		{pair("Windows -t", win(wr+" -t 1"), win(ws+" -t 1")), 0, false, false},
		{pair("Windows -ns", win(wr+" -ns -wa"+counted), win(ws+" -ns"+counted)), 0, true, false},
		{pair("Windows -sp", win(wr+" -sp -wa"+counted), win(ws+" -sp"+counted)), 0, true, true},
		{pair("Windows -u", win(wr+" -u -t 1"), win(ws+" -u -t 1")), 0, false, true},
		{pair("Windows -u -ns", win(wr+" -u -ns -t 3"), win(ws+" -u -ns -t 1")), 3, false, false},
		{pair("Windows -a", win(wr+" -a 6 -wa -w"+counted), win(ws+" -a 3 -w"+counted)), 0, true, false},
		{pair("Windows -rt", win(wr+" -rt -l 100 -t 1"), win(ws+" -rt -l 100 -t 1")), 0, false, false},
		{pair("Windows -6", win("-r -6 -m 2,*,::1 -wa"+counted), win("-s -6 -m 2,*,::1"+counted)), 0, true, false},
		{pair("Windows -xml", win(wr+" -xml result.xml -wa"+counted), win(ws+" -xml result.xml"+counted)), 0, true, false},
	}
	for i := range all {
		r := &all[i]
		words := r.Receiver.Words + " " + r.Sender.Words + " "
		r.Unsynced = strings.Contains(words, "-ns ") || strings.Contains(words, "-N ")
		if strings.Contains(r.Sender.Words, counted) {
			r.Bytes = countedBytes
		}
		r.Warm = strings.Contains(words, "-rt ") // an answer is counted when it is sent: here first
		r.MaySay = []string{
			"leave -t out here to end with it",                        // the sender counts calls, the receiver was given a time
			"-w is about Windows' own ways", "-a: calls that overlap", // the Linux build in the Windows dialect
			"the result is what was received here", "this end's figures are the load that was offered",
		}
		if strings.Contains(words, "-xml ") {
			r.Files = []string{"result.xml"}
		}
	}
	return all
}

// TestMatrix plays each row twice: the Windows build receives from the Linux build, and sends to
// it. So it also has each dialect on each system.
func TestMatrix(t *testing.T) {
	m := on(t)
	for _, r := range matrix() {
		for _, ends := range [][2]recipes.Tool{{m.under(), m.own()}, {m.own(), m.under()}} {
			t.Run(r.Name()+", "+ends[0].Name+" receives", func(t *testing.T) {
				seconds := r.seconds
				if seconds == 0 {
					seconds = shortened
				}
				receiver, sender := m.play(t, r.Recipe, ends[0], ends[1], seconds)
				if sent, received, lost, ok := receiver.Datagrams(); ok && (sent <= 0 || received <= 0 || lost != sent-received) {
					t.Errorf("%d datagrams sent, %d received, %d lost", sent, received, lost)
				}
				if r.exact {
					same(t, receiver, sender)
				}
			})
		}
	}
}

// TestPlainWire plays the originals' matrix with a Linux build that speaks no extension: the Windows
// build meets what it would meet in a real ntttcp, and neither end knows the other's figures. So a
// synchronised sender that counts calls is not among them: its end is early for a receiver with -t.
func TestPlainWire(t *testing.T) {
	m := on(t)
	plain := m.own()
	plain.Name, plain.Env = "plain", append(plain.Env, "FULLBORE_NO_EXTENSION=1")
	for _, r := range matrix() {
		if !r.wire {
			continue
		}
		for _, ends := range [][2]recipes.Tool{{m.under(), plain}, {plain, m.under()}} {
			t.Run(r.Name()+", "+ends[0].Name+" receives", func(t *testing.T) {
				r.PlainWire = true
				receiver, sender := m.play(t, r.Recipe, ends[0], ends[1], max(r.seconds, shortened))
				for _, e := range []*recipes.End{receiver, sender} {
					if _, _, ok := e.Other(); ok {
						t.Errorf("it knows the other end's figures: %v", e)
					}
				}
				if r.exact {
					same(t, receiver, sender)
				}
			})
		}
	}
}

// same: what was sent was received and counted.
func same(t *testing.T, receiver, sender *recipes.End) {
	t.Helper()
	got, err := receiver.Totals()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := sender.Totals()
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Bytes-sent.Bytes) > 2*recipes.Rounding {
		t.Errorf("%.0f bytes sent, %.0f received\n%v\n%v", sent.Bytes, got.Bytes, receiver, sender)
	}
}

// TestRecipes plays every recipe that has a line for Windows, with the Windows build there. A
// recipe of two such lines is played twice.
func TestRecipes(t *testing.T) {
	m := on(t)
	played := map[string]bool{}
	for _, r := range recipes.All() {
		if m.under().Plays(r, r.Receiver) && r.Receiver.Dialect == plan.NTTTCPWindows {
			played[r.ID] = true
			t.Run(r.Name()+", exe receives", func(t *testing.T) {
				r := r
				r.ReceiverSays = without(r.ReceiverSays)
				m.play(t, r, m.under(), m.own(), shortened)
			})
		}
		if m.under().Plays(r, r.Sender) && r.Sender.Dialect == plan.NTTTCPWindows {
			played[r.ID] = true
			t.Run(r.Name()+", exe sends", func(t *testing.T) {
				r := r
				r.SenderSays = without(r.SenderSays)
				m.play(t, r, m.own(), m.under(), shortened)
			})
		}
	}
	for _, id := range []string{"N1", "N2", "N3", "N5", "N6", "N7", "N8", "N9", "N10", "N11", "A1", "A2", "A4", "A5"} {
		if !played[id] {
			t.Errorf("%s was not played with the Windows build", id)
		}
	}
}

// without leaves out what a line for Windows says elsewhere only: that a word means nothing there.
func without(says []string) []string {
	return slices.DeleteFunc(slices.Clone(says), func(s string) bool { return s == "-a: calls that overlap" })
}

// play plays a recipe and checks the layout of what the Windows build leaves.
func (m *machine) play(t *testing.T, r recipes.Recipe, receiver, sender recipes.Tool, seconds int) (re, se *recipes.End) {
	t.Helper()
	re, se = r.Play(t, m.Space, receiver, sender, seconds)
	e := re
	if sender.Name == m.under().Name {
		e = se
	}
	if err := layout(e, r.Files); err != nil {
		t.Error(err)
	}
	return re, se
}
