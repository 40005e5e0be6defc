// Package junit writes the items of a report as JUnit's XML does, for pipelines that show tests:
// one test suite, one test case for each item. A failed item is a failure, an inconclusive one is
// skipped with its reason, since it says nothing against the link.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/result"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []testSuite
}

type testSuite struct {
	XMLName    xml.Name   `xml:"testsuite"`
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Properties properties `xml:"properties"`
	Cases      []testCase
}

type properties struct {
	List []property `xml:"property"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	XMLName   xml.Name `xml:"testcase"`
	Name      string   `xml:"name,attr"`
	Class     string   `xml:"classname,attr"`
	Time      string   `xml:"time,attr"`
	Failure   *message `xml:"failure"`
	Error     *message `xml:"error"`
	Skipped   *message `xml:"skipped"`
	SystemOut string   `xml:"system-out,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteReport prints the report's items, with one Write. A report that broke off has one more case,
// an error.
func WriteReport(w io.Writer, rep *result.Report) error {
	s := testSuite{Name: clean(rep.Kind + " " + strings.Join(rep.Inputs, " "))}
	if !rep.Started.IsZero() {
		s.Timestamp = rep.Started.UTC().Format("2006-01-02T15:04:05")
	}
	s.Properties.List = append(s.Properties.List, property{"tool", clean(strings.TrimSpace(rep.Tool.Name + " " + rep.Tool.Version))}, property{"summary", clean(rep.Summary)})
	if a := rep.Acceptance; a != nil {
		s.Properties.List = append(s.Properties.List,
			property{"suite", clean(a.Suite)}, property{"profile", clean(a.Class)}, property{"link_bps", fmt.Sprint(a.Link)},
			property{"trial", fmt.Sprint(a.Trial)}, property{"settings_sha256", a.Settings})
	}
	var total float64
	for _, i := range rep.Items {
		c := caseOf(rep, &i)
		for _, at := range i.From {
			if at >= 0 && at < len(rep.Runs) {
				total += rep.Runs[at].Elapsed
			}
		}
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	if rep.Err != nil {
		s.Errors = 1
		s.Cases = append(s.Cases, testCase{Name: "came to its end", Class: "fullbore." + clean(rep.Kind), Time: "0", Error: &message{Message: clean(rep.Err.Text), Type: clean(rep.Err.Code)}})
	}
	s.Tests, s.Time = len(s.Cases), fmt.Sprintf("%.3f", total)
	all := suites{Name: "fullbore", Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Time: s.Time, Suites: []testSuite{s}}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err = w.Write(append([]byte(xml.Header), append(data, '\n')...))
	return err
}

func caseOf(rep *result.Report, i *result.Item) testCase {
	name := clean(i.ID)
	if i.Title != "" {
		name += " " + clean(i.Title)
	}
	if i.Direction != "" {
		name += ", " + clean(i.Direction)
	}
	var seconds float64
	for _, at := range i.From {
		if at >= 0 && at < len(rep.Runs) {
			seconds += rep.Runs[at].Elapsed
		}
	}
	c := testCase{Name: name, Class: "fullbore." + clean(rep.Kind), Time: fmt.Sprintf("%.3f", seconds)}
	var lines []string
	for _, r := range i.Reasons {
		lines = append(lines, clean(r))
	}
	text := strings.Join(lines, "\n")
	first := ""
	if len(lines) > 0 {
		first = lines[0]
	}
	for _, k := range i.Criteria {
		if k.Result == i.Result && i.Result != result.Pass {
			first = clean(k.Reason)
			break
		}
	}
	switch i.Result {
	case result.Fail:
		c.Failure = &message{Message: first, Type: "fail", Text: text}
	case result.Inconclusive:
		c.Skipped = &message{Message: "inconclusive: " + first}
		c.SystemOut = text
	default:
		c.SystemOut = text
	}
	return c
}

func clean(s string) string { return screen.Clean(s) }
