//go:build linux && amd64

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/test/recipes"
)

// consoles are what NTTTCP for Windows prints of a test, to the blank: heading, tables, and below
// them nothing but our own lines. The second is that of a test that measures latency.
var consoles = [2]*regexp.Regexp{
	regexp.MustCompile(opening + `
Thread  Time\(s\) Throughput\(KB/s\) Avg B / Compl
======  ======= ================ =============
(?:` + thread + `
)+` + totals + buffers),
	regexp.MustCompile(opening + `                                               Latency\(ns\)
Thread  Time\(s\) Throughput\(KB/s\) Avg B / Compl        Avg        Min        Max
======  ======= ================ ============= ========== ========== ==========
(?:` + thread + ` [ \d]{10,} [ \d]{10,} [ \d]{10,}
)+` + totals + `
Latency\(ns\)
       Avg        Min        Max
========== ========== ==========
[ \d]{10,} [ \d]{10,} [ \d]{10,}
` + buffers),
}

// The parts. Figures may be wider than their columns. -m 1 adds a line each second.
const (
	opening = `^Copyright Version 5\.40
Network activity progressing\.\.\.
(?:Real-time throughput\(MB/s\): \d+\.\d{3}
)*
`
	thread = `[ \d]{6,} [ \d]{4,}\.\d{3} [ \d]{12,}\.\d{3} [ \d]{9,}\.\d{3}`
	totals = `

#####  Totals:  #####


   Bytes\(MEG\)    realtime\(s\) Avg Frame Size Throughput\(MB/s\)
================ =========== ============== ================
[ \d]{9,}\.\d{6} [ \d]{7,}\.\d{3} [ \d]{10,}\.\d{3} [ \d]{12,}\.\d{3}
`
	buffers = `

Throughput\(Buffers/s\) Cycles/Byte       Buffers
===================== =========== =============
[ \d]{17,}\.\d{3} [ \d]{7,}\.\d{3} [ \d]{9,}\.\d{3}


DPCs\(count/s\) Pkts\(num/DPC\)   Intr\(count/s\) Pkts\(num/intr\)
============= ============= =============== ==============
[ \d]{9,}\.\d{3} [ \d]{9,}\.\d{3}   [ \d]{9,}\.\d{3}  [ \d]{9,}\.\d{3}


Packets Sent Packets Received Retransmits Errors Avg\. CPU %
============ ================ =========== ====== ==========
[ \d]{12,} [ \d]{16,} [ \d]{11,} [ \d]{6,} [ \d]{6,}\.\d{3}
(?:

NOTE::Avg CPU% drops below 0%.*

)?(?:fullbore: .*
)*$`
)

// unixLines turns CRLF into LF. Each line must end so.
func unixLines(text string) (string, error) {
	if n := strings.Count(text, "\n"); n != strings.Count(text, "\r\n") || n != strings.Count(text, "\r") {
		return "", fmt.Errorf("not every line ends in CRLF: %q", text)
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// layout checks what the Windows build has printed and written as NTTTCP for Windows.
func layout(e *recipes.End, files []string) error {
	if e.Layout != plan.NTTTCPWindows {
		return nil
	}
	text, err := unixLines(e.Stdout)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if !consoles[0].MatchString(text) && !consoles[1].MatchString(text) {
			return fmt.Errorf("the %s's console is not as NTTTCP's: %s", e.Role, text)
		}
		return nil
	}
	var errs []error
	if strings.Contains(text, "Totals") {
		errs = append(errs, fmt.Errorf("tables beside the XML: %s", text))
	}
	for _, name := range files {
		path := filepath.Join(e.Dir, name)
		data, err := os.ReadFile(path)
		if err == nil {
			_, err = unixLines(string(data))
		}
		if err == nil {
			var out []byte
			if out, err = exec.Command("xmllint", "--noout", path).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
		if err == nil && !bytes.HasPrefix(data, []byte("<ntttcp")) {
			err = fmt.Errorf("it begins with %.40q", data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
