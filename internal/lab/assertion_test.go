package lab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const assertionDocument = `{
	"name": "a \"b\" c", "n": 190.5, "neg": -2, "zero": 0, "yes": true, "no": false, "nothing": null,
	"list": [{"v": 1}, {"v": 2}, {"w": 3}], "empty": [], "nested": [[1, 2], [3]], "big": 200000000
}`

func TestAssertions(t *testing.T) {
	var doc any
	if err := json.Unmarshal([]byte(assertionDocument), &doc); err != nil {
		t.Fatal(err)
	}
	// An assertion that holds has no message.
	tests := map[string]string{
		`n == 190.5`:                 "",
		`n == 190`:                   "n == 190: found 190.5",
		`n == 190 ± 0.5`:             "",
		`n == 190 ± 0.49`:            "n == 190 ± 0.49: found 190.5",
		`n == 190 +- 1%`:             "",
		`n == 188 ± 1%`:              "n == 188 ± 1%: found 190.5",
		`neg == -2.02 ± 1%`:          "",
		`big == 200M`:                "",
		`big == 0.2 Gbit/s ± 1 kbps`: "",
		`big >= 200M`:                "",
		`big > 200M`:                 "big > 200M: found 200000000",
		`neg < 0`:                    "",
		`zero <= 0`:                  "",
		`zero < 0`:                   "zero < 0: found 0",
		`n != 190`:                   "",
		`n != 190.5`:                 "n != 190.5: found 190.5",
		`name == "a \"b\" c"`:        "",
		`name contains "b"`:          "",
		`name contains "±"`:          `name contains "±": found "a \"b\" c"`,
		`n contains "1"`:             `n contains "1": found 190.5`,
		`name < 3`:                   `name < 3: found "a \"b\" c"`,
		`name == 3`:                  `name == 3: found "a \"b\" c"`,
		`yes == true`:                "",
		`yes == false`:               "yes == false: found true",
		`nothing == null`:            "",
		`nothing exists`:             "",
		`nothing missing`:            "nothing missing: it is there: null",
		`zero == null`:               "zero == null: found 0",
		`none exists`:                "none exists: there is no none",
		`none == null`:               "none == null: there is no none",
		`none missing`:               "",
		`n.x missing`:                "",
		`list[1].v == 2`:             "",
		`list[3] missing`:            "",
		`list[3].v == 1`:             "list[3].v == 1: there is no list[3]",
		`list[*].v >= 1`:             "list[*].v >= 1: there is no list[2].v",
		`list[*] exists`:             "",
		`empty[*] == 1`:              "empty[*] == 1: there is no empty[*]",
		`empty[*] missing`:           "",
		`nested[*][*] > 0`:           "",
		`nested[*][*] < 3`:           "nested[*][*] < 3: found 3",
		`nested[*][1] exists`:        "nested[*][1] exists: there is no nested[1][1]",
		`list == 1`:                  `list == 1: found [{"v":1},{"v":2},{"w":3}]`,
		`list != 1`:                  "",
		`  n   ==   190.5  `:         "",
	}
	for text, want := range tests {
		if got := mustAssertion(t, text).Check(doc); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if got := mustAssertion(t, `s == 1`).Check(map[string]any{"s": strings.Repeat("x", 500)}); len(got) > 150 {
		t.Errorf("a long value is not shortened: %q", got)
	}
	if got := mustAssertion(t, `x == 1`).Check("no object"); got != "x == 1: there is no x" {
		t.Errorf("a document that is no object: %q", got)
	}
}

func TestAssertionFaults(t *testing.T) {
	tests := map[string]string{
		``:              `assertion "": no path`,
		`n`:             `assertion "n": no operator after the path`,
		`n ~ 1`:         `assertion "n ~ 1": unknown operator "~"; there are: == != < <= > >= contains exists missing`,
		`n ==`:          `assertion "n ==": no value`,
		`n == x`:        `assertion "n == x": "x" is no number, rate, true, false, null or "text"`,
		`n == NaN`:      `assertion "n == NaN": "NaN" is not a number`,
		`n == "x`:       `assertion "n == \"x": bad text "x: unexpected end of JSON input`,
		`n exists 1`:    `assertion "n exists 1": "exists" takes no value`,
		`n < "a"`:       `assertion "n < \"a\"": < needs a number`,
		`n contains 1`:  `assertion "n contains 1": contains needs a quoted text`,
		`n < 1 ± 1`:     `assertion "n < 1 ± 1": a tolerance needs == and a number`,
		`n == true ± 1`: `assertion "n == true ± 1": a tolerance needs == and a number`,
		`n == 1 ± -1`:   `assertion "n == 1 ± -1": tolerance "-1" is negative`,
		`n == 1 ± x%`:   `assertion "n == 1 ± x%": tolerance: "x" is no number, rate, true, false, null or "text"`,
		`.a == 1`:       `assertion ".a == 1": path ".a": an empty key`,
		`a..b == 1`:     `assertion "a..b == 1": path "a..b": an empty key`,
		`a. == 1`:       `assertion "a. == 1": path "a.": an empty key`,
		`a[ == 1`:       `assertion "a[ == 1": path "a[": [ without ]`,
		`a[x] == 1`:     `assertion "a[x] == 1": path "a[x]": index "x" is neither * nor a number from 0`,
		`a[-1] == 1`:    `assertion "a[-1] == 1": path "a[-1]": index "-1" is neither * nor a number from 0`,
		`a[0]b == 1`:    `assertion "a[0]b == 1": path "a[0]b": a key after ] needs a dot`,
	}
	for text, want := range tests {
		_, err := ParseAssertion(text)
		if err == nil {
			t.Errorf("%s: accepted", text)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// FuzzAssertion: what is accepted can be checked against any document.
func FuzzAssertion(f *testing.F) {
	for _, s := range []string{`a.b[0][*] == 1 ± 2%`, `a contains "x"`, `a exists`, `n <= 5M`} {
		f.Add(s, assertionDocument)
	}
	f.Fuzz(func(t *testing.T, text, document string) {
		a, err := ParseAssertion(text)
		if err != nil {
			return
		}
		var doc any
		if json.Unmarshal([]byte(document), &doc) != nil {
			return
		}
		a.Check(doc)
	})
}
