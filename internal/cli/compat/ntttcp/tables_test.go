package ntttcp

import "testing"

// TestSetters: each row of a table is acted on, and nothing else.
func TestSetters(t *testing.T) {
	t.Parallel()
	check := func(kind string, rows, setters []string) {
		has := map[string]bool{}
		for _, s := range setters {
			has[s] = true
		}
		for _, r := range rows {
			if !has[r] {
				t.Errorf("%s %s: nothing is done", kind, r)
			}
			delete(has, r)
		}
		for s := range has {
			t.Errorf("%s %s: not in the table", kind, s)
		}
	}
	names := func(table []Option) (out []string) {
		for _, o := range table {
			out = append(out, o.Name)
		}
		return out
	}
	check("linux", names(LinuxOptions), append(keys(linuxSetters), "-h")) // parse itself does -h
	check("windows", names(WindowsOptions), keys(windowsSetters))
	var words []string
	for _, w := range LinuxWords {
		words = append(words, w.Word)
	}
	check("word", words, append(keys(linuxWordSetters), "-a")) // foreignWord itself does -a
}

func keys[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
