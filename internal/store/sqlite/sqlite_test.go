package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/store/sqlite"
	"github.com/fullbore-net/fullbore/internal/store/storetest"
)

// childVariable makes this test program a writer for TestKilled.
const childVariable = "FULLBORE_TEST_STORE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		write(path)
		return
	}
	os.Exit(m.Run())
}

func open(t *testing.T, place string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(place, "sub", "history.db"))
	if err != nil {
		t.Error(err) // not Fatal: also called by other goroutines
		return nil
	}
	return s
}

func TestConformance(t *testing.T) { storetest.Test(t, open) }

// write adds runs for ever, and says of each that it was added.
func write(path string) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	first, _ := strconv.Atoi(os.Getenv(childVariable + "_FROM"))
	for n := first; ; n++ {
		e := store.OfRun(storetest.Run(n))
		e.Original = []byte(strings.Repeat(strconv.Itoa(n), 3000))
		if err := s.Add(ctx, e); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("added", n)
		if n%4 == 3 {
			if _, err := s.Prune(ctx, store.Bounds{Keep: 1 << 20}); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
		}
	}
}

// TestKilled: a writer is killed at moments that nobody chose, the making of the file included.
// Afterwards the file is whole, holds all that was said to be added, each whole, and can be
// written.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.db")
	said, from := 0, 0
	for round := range 14 {
		if round == 5 { // once more from the beginning
			path, said, from = filepath.Join(t.TempDir(), "history.db"), 0, 0
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childVariable+"="+path, childVariable+"_FROM="+strconv.Itoa(from))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if round%5 != 0 { // else it is killed while it opens
			for range 1 + rand.IntN(4) {
				if !lines.Scan() {
					break
				}
				said = max(said, added(t, lines.Text()))
			}
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // where it dies, not what is waited for
		_ = cmd.Process.Kill()
		for lines.Scan() {
			said = max(said, added(t, lines.Text()))
		}
		_ = cmd.Wait()
		from = check(t, path, said)
	}
	if said == 0 {
		t.Error("nothing was ever added")
	}
}

// added reads a line of write: how many runs there are at least.
func added(t *testing.T, line string) int {
	t.Helper()
	word, number, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(number)
	if word != "added" || err != nil {
		t.Fatalf("the writer says %q", line)
	}
	return n + 1
}

// check looks at the file after a kill and returns how many runs it holds.
func check(t *testing.T, path string, said int) int {
	t.Helper()
	ctx := t.Context()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity: %q, %v", verdict, err)
	}
	all, err := s.List(ctx, store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < said {
		t.Fatalf("%d runs are left of %d that were added", len(all), said)
	}
	for n, r := range all {
		e, err := s.Get(ctx, r.ID)
		if err != nil || r.ID != storetest.ID(n) || string(e.Original) != strings.Repeat(strconv.Itoa(n), 3000) {
			t.Fatalf("run %d (%s) is not whole: %v", n, r.ID, err)
		}
	}
	return len(all)
}

func TestNewerSchema(t *testing.T) {
	place := t.TempDir()
	s := open(t, place)
	if err := s.Add(t.Context(), store.OfRun(storetest.Run(1))); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	path := filepath.Join(place, "sub", "history.db")
	exec1(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)")
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var runs, version int
	if err := db.QueryRow("SELECT (SELECT count(*) FROM runs), (SELECT max(version_id) FROM goose_db_version)").Scan(&runs, &version); err != nil || runs != 1 || version != 9000 {
		t.Errorf("it was touched: %d runs, version %d, %v", runs, version, err)
	}
}

// A file of the first schema is brought up to date with its runs.
func TestMigration(t *testing.T) {
	place := t.TempDir()
	s := open(t, place)
	if err := s.Add(t.Context(), store.OfRun(storetest.Run(1))); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	path := filepath.Join(place, "sub", "history.db")
	exec1(t, path, "DROP TABLE originals")
	exec1(t, path, "DELETE FROM goose_db_version WHERE version_id > 1")
	s = open(t, place)
	defer s.Close()
	e := store.OfRun(storetest.Run(2))
	e.Original = []byte("x")
	if err := s.Add(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(t.Context(), store.Filter{}); err != nil || len(all) != 2 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

func exec1(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// What cannot be opened says so at once, and nothing panics.
func TestCannot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("this is no database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a folder": dir, "below a file": filepath.Join(file, "history.db"), "no database": file} {
		began := time.Now()
		s, err := sqlite.Open(t.Context(), path)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: opened", name)
		}
		if d := time.Since(began); d > sqlite.Wait/2 {
			t.Errorf("%s: took %v to say %v", name, d, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "this is no database") {
		t.Errorf("a foreign file was changed: %v", err)
	}
}

// What can only be read is read whole, also what another process has not yet brought into the main file; and
// nothing can be written to it.
func TestReading(t *testing.T) {
	place := t.TempDir()
	path := filepath.Join(place, "sub", "history.db")
	if _, err := sqlite.OpenReading(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	writer := open(t, place)
	if err := writer.Add(t.Context(), store.OfRun(storetest.Run(1))); err != nil {
		t.Fatal(err)
	}
	look := func(what string) {
		t.Helper()
		s, err := sqlite.OpenReading(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer s.Close()
		if all, err := s.List(t.Context(), store.Filter{}); err != nil || len(all) != 1 {
			t.Errorf("%s: %d runs, %v", what, len(all), err)
		}
		if e, err := s.Get(t.Context(), storetest.ID(1)); err != nil || e.Run == nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := s.Note(t.Context(), storetest.ID(1), "x"); err == nil || !strings.Contains(err.Error(), "it can only be read here") {
			t.Errorf("%s: a note: %v", what, err)
		}
		if _, err := s.Prune(t.Context(), store.Bounds{Keep: 1}); err != nil {
			t.Errorf("%s: pruning nothing: %v", what, err)
		}
	}
	look("beside a writer")
	_ = writer.Close()
	look("alone")
	exec1(t, path, "DELETE FROM goose_db_version WHERE version_id > 1")
	if _, err := sqlite.OpenReading(t.Context(), path); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("an older schema: %v", err)
	}
}

// Names with signs that mean something in a URI.
func TestNames(t *testing.T) {
	for _, name := range []string{"a b", "100%", "what?", "x#y", "ä", "a&b=c"} {
		path := filepath.Join(t.TempDir(), name, "history.db")
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Add(t.Context(), store.OfRun(storetest.Run(1))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Close()
		st, err := os.Stat(path)
		if err != nil || st.Size() == 0 {
			t.Errorf("%s: not there: %v", name, err)
			continue
		}
		if st.Mode()&fs.FileMode(0o077) != 0 {
			t.Errorf("%s: others may read it: %v", name, st.Mode())
		}
	}
}
