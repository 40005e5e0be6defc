package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/fullbore-net/fullbore/"

// listed is the part of `go list -json` that matters here.
type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.String())
	}
	var all []listed
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func match(pattern, path string) bool {
	if family, ok := strings.CutSuffix(pattern, "/…"); ok {
		return path == family || strings.HasPrefix(path, family+"/")
	}
	return path == pattern
}

func room(path string) *Room {
	for i := range Rooms {
		if match(Rooms[i].Path, path) {
			return &Rooms[i]
		}
	}
	return nil
}

func TestLayers(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		packages := list(t, goos)
		if len(packages) < 10 {
			t.Fatalf("%s: only %d packages listed", goos, len(packages))
		}
		for _, p := range packages {
			path := strings.TrimPrefix(p.ImportPath, module)
			r := room(path)
			if r == nil {
				t.Errorf("%s has no row in archtest.Rooms: give it a layer and a reason", path)
				continue
			}
			for _, imp := range p.Imports {
				if fault := check(r, imp); fault != "" {
					t.Errorf("%s (%s) imports %s: %s", path, goos, imp, fault)
				}
			}
		}
	}
}

// check says what is wrong with r importing imp, "" when nothing is.
func check(r *Room, imp string) string {
	ours, isOurs := strings.CutPrefix(imp, module)
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case isOurs:
		target := room(ours)
		if target == nil {
			return "it has no row"
		}
		if target.Layer < r.Layer {
			return ""
		}
		for _, also := range r.Also {
			if match(also, ours) {
				return ""
			}
		}
		return "not on a lower layer"
	case !strings.Contains(first, "."):
		return "" // standard library
	}
	for _, m := range r.Modules {
		if imp == m || strings.HasPrefix(imp, m+"/") {
			return ""
		}
	}
	return "module not granted to this room"
}

func TestEveryRowHasAReason(t *testing.T) {
	for _, r := range Rooms {
		if r.Why == "" {
			t.Errorf("%s: no reason given", r.Path)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	up := check(room("internal/units"), module+"internal/plan")
	side := check(room("internal/render/csv"), module+"internal/render/json")
	alien := check(room("result"), "github.com/spf13/cobra")
	if up == "" || side == "" || alien == "" {
		t.Errorf("a fault was not seen: up=%q side=%q alien=%q", up, side, alien)
	}
	if fine := check(room("internal/runner"), module+"internal/traffic"); fine != "" {
		t.Errorf("runner → traffic: %s", fine)
	}
}
