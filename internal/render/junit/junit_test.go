package junit_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/junit"
	"github.com/fullbore-net/fullbore/result"
)

func report() *result.Report {
	return &result.Report{
		Kind: "accept", Inputs: []string{"192.0.2.2", "--link", "1G"}, Summary: "NOT ACCEPTED: <it> & \"that\"",
		Acceptance: &result.Acceptance{Suite: "Line", Class: "wan", Link: 1e9},
		Runs:       []*result.Run{{Elapsed: 1.5}, {Elapsed: 2}},
		Items: []result.Item{
			{ID: "A1-up", Title: "TCP, one stream", Direction: "up", Result: result.Pass, Reasons: []string{"Fine."}, From: []int{0}},
			{ID: "A4-up", Result: result.Fail, Reasons: []string{"Duplicates 0.", "Loss \x1b[31mhigh."}, From: []int{0, 1}, Criteria: []result.Criterion{{Result: result.Pass, Reason: "Duplicates 0."}, {Result: result.Fail, Reason: "Loss high."}}},
			{ID: "A7-up", Result: result.Inconclusive, Reasons: []string{"It was not measured."}, From: []int{7}},
		},
		Err: &result.Error{Code: "interrupted", Text: "interrupted by signal"},
	}
}

func TestReport(t *testing.T) {
	var b bytes.Buffer
	if err := junit.WriteReport(&b, report()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Time  string `xml:"time,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Time    string `xml:"time,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Error *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if got.Tests != 4 || got.Failures != 1 || got.Errors != 1 || got.Skipped != 1 || len(got.Suites) != 1 {
		t.Fatalf("%+v", got)
	}
	cs := got.Suites[0].Cases
	if cs[0].Name != "A1-up TCP, one stream, up" || cs[0].Time != "1.500" || cs[0].Failure != nil || cs[0].Skipped != nil {
		t.Errorf("passed: %+v", cs[0])
	}
	if f := cs[1].Failure; f == nil || f.Message != "Loss high." || !strings.Contains(f.Text, "Duplicates 0.\nLoss ") || cs[1].Time != "3.500" {
		t.Errorf("failed: %+v", cs[1])
	}
	if s := cs[2].Skipped; s == nil || s.Message != "inconclusive: It was not measured." {
		t.Errorf("inconclusive: %+v", cs[2])
	}
	if cs[3].Error == nil {
		t.Error("what broke off is no error")
	}
	if strings.ContainsRune(b.String(), 0x1b) {
		t.Error("a control character came through")
	}
}
