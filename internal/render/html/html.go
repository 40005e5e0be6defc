// Package html writes a run or a report as one page: the answer, its evidence, what to do,
// the plots and the reasoning. The page is one file that needs nothing else: no script, no
// picture, no font from anywhere; it opens from disk, prints, and follows the reader's
// choice of light or dark.
//
// Everything that comes from elsewhere (names of hosts, notices, words of the user) goes
// through html/template or svg.Escape.
package html

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

//go:embed report.tmpl report.css accept.tmpl accept.css
var files embed.FS

// page is what the template shows. Nothing in it is asked for twice.
type page struct {
	Title    string
	Kind     string
	CSS      template.CSS
	Tool     string
	Started  string
	Command  string // the words of the command line, where there are more than a host
	Sentence string
	Broke    string // why it broke off, "" = it did not
	First    *verdictView
	Tiles    []tile
	Causes   []verdictView
	Notes    []verdictView
	Advice   []adviceGroup
	Reach    *plot
	Items    []result.Item
	Unseen   []string
	Hosts    *hostTable
	Notices  []noticeView
	Plots    []plot
	Tables   []table
	Stages   []stageView
	Reasoned bool // stages say what they ruled in and out
	Accept   *acceptView
}

// tile is a figure of the answer.
type tile struct{ Name, Value, Note string }

// plot is a drawing with its words.
type plot struct {
	ID      string
	Heading string
	Text    string
	Drawing template.HTML
}

type noticeView struct{ Level, Code, Text, Fix, Where string }

// Write prints the page of one run.
func Write(w io.Writer, run *result.Run) error {
	return WriteReport(w, &result.Report{Schema: result.Schema, Kind: "test", Tool: run.Tool, Started: run.Started, Runs: []*result.Run{run}, Err: run.Err, Summary: run.Summary})
}

// WriteReport prints the page of a report, with one Write. Nothing is written when it cannot
// be made.
func WriteReport(w io.Writer, rep *result.Report) error {
	css, err := files.ReadFile("report.css")
	if err != nil {
		return fmt.Errorf("html: %w", err)
	}
	t, err := template.New("report.tmpl").Funcs(template.FuncMap{"code": spoken, "inc": func(n int) int { return n + 1 }}).ParseFS(files, "report.tmpl", "accept.tmpl")
	if err != nil {
		return fmt.Errorf("html: %w", err)
	}
	p := pageOf(rep)
	if p.Accept != nil {
		more, err := files.ReadFile("accept.css")
		if err != nil {
			return fmt.Errorf("html: %w", err)
		}
		css = append(css, more...)
	}
	p.CSS = template.CSS(svg.CSS + string(css)) //nolint:gosec // both are constants of this program
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("html: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// drawn marks a drawing as safe: svg.Escape has been over every text in it.
func drawn(s string) template.HTML {
	return template.HTML(s) //nolint:gosec // made by package svg
}

// spoken makes words of a stable code: "receive-window" is read as two.
func spoken(code string) string { return strings.ReplaceAll(code, "-", " ") }

func pageOf(rep *result.Report) *page {
	p := &page{
		Kind: clean(rep.Kind), Tool: clean(strings.TrimSpace(rep.Tool.Name + " " + rep.Tool.Version)), Sentence: clean(rep.Summary),
		Unseen: cleaned(rep.Unseen),
	}
	for _, i := range rep.Items {
		p.Items = append(p.Items, result.Item{ID: clean(i.ID), Result: clean(i.Result), Reasons: cleaned(i.Reasons)})
	}
	if !rep.Started.IsZero() {
		p.Started = rep.Started.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if len(rep.Inputs) > 1 && rep.Acceptance == nil {
		p.Command = clean("fullbore " + rep.Kind + " " + typed(rep.Inputs))
	}
	p.Title = titleOf(rep)
	if p.Sentence == "" {
		var all []string
		for _, r := range rep.Runs {
			if r.Summary != "" {
				all = append(all, clean(r.Summary))
			}
		}
		p.Sentence = strings.Join(all, " ")
	}
	if p.Sentence == "" {
		p.Sentence = "Nothing was measured."
	}
	if rep.Err != nil {
		p.Broke = clean(rep.Err.Text)
	}
	p.Accept = acceptance(rep)
	p.judgement(rep)
	p.Tiles = tiles(rep)
	p.Hosts = compare(rep)
	p.Notices = notices(rep)
	if rep.Soak == nil { // its runs have no rows: the record has them
		p.Stages = stages(rep)
	}
	for i := range p.Stages {
		p.Reasoned = p.Reasoned || p.Stages[i].Showed != ""
	}
	p.Plots = append(append(p.Plots, sweepPlots(rep)...), soakPlots(rep)...)
	for _, f := range []func(*result.Report) []table{findingTables, frameworkTables, activationTables, sweepTables, comparedTables, connTables, loadTables, pathTables, soakTables} {
		p.Tables = append(p.Tables, f(rep)...)
	}
	if rep.Sweep != nil {
		p.Advice = append(p.Advice, sweepTodo(rep.Sweep)...)
	}
	p.Advice = append(p.Advice, nextTodo(rep)...)
	for _, f := range []func(*result.Report) *plot{sidesPlot, connPlot, roundsPlot, knee, windows, delays, curve, heat} {
		if x := f(rep); x != nil {
			p.Plots = append(p.Plots, *x)
		}
	}
	return p
}

// typed are words as a shell takes them.
func typed(words []string) string {
	out := slices.Clone(words)
	for i, w := range out {
		if w == "" || strings.ContainsAny(w, " \t'\"$&|<>;*?()`\\") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// titles are those of the kinds of a report, before the name of the other end.
var titles = map[string]string{
	"diagnose": "What limits the path to ", "test": "Test of the path to ", "delay": "Delay of the path to ", "accept": "Acceptance of the path to ",
	"load": "Delay under load of the path to ", "mtu": "Packet sizes of the path to ",
	"sweep": "Sweep of the path to ", "soak": "Soak of the path to ", "connrate": "Connections a second to ", "compare": "Comparison of the path to ",
	"udpmax": "Highest UDP rate of the path to ", "capacity": "Capacity of the path to ", "model": "TCP's chances on the path to ",
	"rfc2544": "RFC 2544 tests of the path to ", "rfc6349": "RFC 6349 test of the path to ", "y1564": "Service activation (Y.1564) over the path to ",
}

func titleOf(rep *result.Report) string {
	if c := rep.Comparison; c != nil && !slices.ContainsFunc(rep.Inputs, func(w string) bool { return strings.HasPrefix(w, "--ab") }) {
		return clean("Comparison of " + c.A.Name + " with " + c.B.Name)
	}
	what := titles[rep.Kind]
	if what == "" {
		what = "Report on the path to "
	}
	to := hostOf(rep)
	if to == "" {
		return strings.TrimSuffix(what, " to ")
	}
	return what + to
}

// hostOf is the name of the other end: as the user typed it where nothing else was typed, else the
// one that was connected to.
func hostOf(rep *result.Report) string {
	if len(rep.Inputs) == 1 && rep.Acceptance == nil {
		return clean(rep.Inputs[0])
	}
	if rep.Acceptance == nil && slices.Contains(rep.Inputs, "self") {
		return "this machine itself"
	}
	for _, r := range rep.Runs {
		if rep.Acceptance == nil && r.Test.Target != "" {
			return clean(r.Test.Target)
		}
	}
	if len(rep.Runs) > 0 {
		return endName(rep, rep.Runs[0].End.Other())
	}
	if rep.ConnRate != nil {
		return clean(rep.ConnRate.Target)
	}
	return ""
}

// endName names an end as the sentences do: by the first run that has streams.
func endName(rep *result.Report, e result.End) string {
	for _, r := range rep.Runs {
		if len(r.Streams) > 0 {
			return clean(r.EndName(e))
		}
	}
	return clean(rep.Runs[0].EndName(e))
}

// clean makes one line of text from elsewhere, without what would turn its direction around.
func clean(s string) string { return screen.Clean(s) }

func cleaned(ss []string) []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = clean(s)
	}
	return out
}

// notices are those of the whole and of the runs, each kind once: of later stages only the
// numbers are told, since their texts differ in nothing but figures.
func notices(rep *result.Report) (out []noticeView) {
	at := map[[2]string]int{}
	add := func(n result.Notice, where string) {
		v := noticeView{Level: string(n.Level), Code: clean(n.Code), Text: clean(n.Text), Fix: clean(n.Fix), Where: where}
		key := [2]string{v.Code, string(n.End) + v.Fix[:min(len(v.Fix), 12)]}
		if i, known := at[key]; known {
			if where != "" && !strings.Contains(", "+out[i].Where+",", ", "+where+",") {
				out[i].Where = strings.TrimPrefix(out[i].Where+", "+where, ", ")
			}
			return
		}
		at[key] = len(out)
		out = append(out, v)
	}
	for _, n := range rep.Notices {
		add(n, "")
	}
	for i, r := range rep.Runs {
		where := ""
		if len(rep.Runs) > 1 {
			where = numberOf(rep, i)
		}
		for _, n := range r.Notices {
			add(n, where)
		}
	}
	return out
}

// numberOf is the number by which the page calls the stage of a run.
func numberOf(rep *result.Report, run int) string {
	for k, s := range rep.Stages {
		if s.Run != nil && *s.Run == run {
			return fmt.Sprint(k + 1)
		}
	}
	return fmt.Sprint(run + 1)
}
