package oshost

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tree is the folder that holds proc and sys; "" is the running machine's root.
type tree struct{ dir string }

func (t tree) path(p string) string {
	if t.dir == "" {
		return "/" + p
	}
	return filepath.Join(t.dir, p)
}

// maxFile bounds what is read of one file: those below are small, but a recorded tree
// may hold anything.
const maxFile = 1 << 20

// read returns the file's bytes, nil when it cannot be read.
func (t tree) read(p string) []byte { return t.head(p, maxFile) }

// head returns at most n bytes of a file's beginning, nil when it cannot be read. Some
// files cost more the more of them is read (/proc/cpuinfo asks every CPU).
func (t tree) head(p string, n int) []byte {
	f, err := os.Open(t.path(p))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var out bytes.Buffer
	buf := make([]byte, min(n, 16<<10))
	for out.Len() < n {
		k, err := f.Read(buf[:min(len(buf), n-out.Len())])
		out.Write(buf[:k])
		if err != nil || k == 0 {
			break
		}
	}
	return out.Bytes()
}

// text returns a one-line file without blanks around it; "" when it cannot be read.
func (t tree) text(p string) string { return strings.TrimSpace(string(t.read(p))) }

// int returns a file that holds one whole number, nil when it does not.
func (t tree) int(p string) *int64 {
	v, err := strconv.ParseInt(t.text(p), 10, 64)
	if err != nil {
		return nil
	}
	return &v
}

// flag returns a file that holds 0 or another number.
func (t tree) flag(p string) *bool {
	v := t.int(p)
	if v == nil {
		return nil
	}
	b := *v != 0
	return &b
}

// ints returns the whole numbers in a file, nil when one of its words is not one.
func (t tree) ints(p string) []int64 {
	var out []int64
	for _, w := range strings.Fields(t.text(p)) {
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// words returns the words of a file, nil when there are none.
func (t tree) words(p string) []string {
	if f := strings.Fields(t.text(p)); len(f) > 0 {
		return f
	}
	return nil
}

// list returns the names in a folder, nil when it cannot be read.
func (t tree) list(p string) []string {
	entries, err := os.ReadDir(t.path(p))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// exists reports whether there is something at p.
func (t tree) exists(p string) bool {
	_, err := os.Lstat(t.path(p))
	return err == nil
}

// target returns the last element of what a symbolic link points to, "" when it is none.
func (t tree) target(p string) string {
	s, err := os.Readlink(t.path(p))
	if err != nil {
		return ""
	}
	return filepath.Base(s)
}

// resolved returns p with its symbolic links followed, below the root; "" when it does
// not exist.
func (t tree) resolved(p string) string {
	full, err := filepath.EvalSymlinks(t.path(p))
	if err != nil {
		return ""
	}
	root, err := filepath.EvalSymlinks(t.path("/"))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || strings.HasPrefix(rel, "..") {
		return ""
	}
	return "/" + filepath.ToSlash(rel)
}

// countCPUs counts the CPUs in a list as sysfs prints it, "0-3,8"; 0 when it is none.
func countCPUs(list string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return 0
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(hi); err != nil || b < a {
				return 0
			}
		}
		n += b - a + 1
	}
	return n
}

// keyed returns the value of the first "key<sep>value" line, "" when there is none.
func keyed(text []byte, key string, sep byte) string {
	for line := range bytes.Lines(text) {
		k, v, ok := bytes.Cut(line, []byte{sep})
		if ok && string(bytes.TrimSpace(k)) == key {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}
