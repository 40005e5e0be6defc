package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// entry is what is known of one scenario.
type entry struct {
	Name    string   `json:"name"`
	Hash    string   `json:"hash"` // of the scenario, its facts and the program
	Right   int      `json:"right"`
	Wrong   int      `json:"wrong"`
	Unfit   int      `json:"unfit"`           // rounds in which no play counted
	Cannot  int      `json:"cannot"`          // of them, what the machine cannot make at all
	Again   int      `json:"again,omitempty"` // plays of an earlier program, judged by this one's rules
	Voids   int      `json:"voids"`
	Reasons []string `json:"reasons,omitempty"`
	// Said is what was said of the path in each play that counted, of diagnoses: the code of
	// the verdict that was asked for if it was there, else the first.
	Said    []string `json:"said,omitempty"`
	Seconds float64  `json:"seconds"` // of all rounds, voids included
	Bytes   int64    `json:"bytes"`   // that came to the link in all of them
	Date    string   `json:"date"`
	// earlier is the commit of an earlier program that was played; "" = it was the present one.
	earlier string
}

func (e *entry) rounds() int         { return e.Right + e.Wrong + e.Unfit }
func (e *entry) done(plays int) bool { return e.rounds() >= plays }

// verdict is the word of the table.
func (e *entry) verdict(key string) string {
	_, known := knownWrong[key]
	switch {
	case e == nil || e.rounds() == 0:
		return "not played"
	case e.Wrong > 0 && known:
		return "**wrong**, known"
	case e.Wrong > 0:
		return "**wrong**"
	case e.Right >= wanted:
		return "right"
	case e.Cannot > 0:
		return "machine cannot"
	case e.Unfit > 0:
		return "machine unfit"
	}
	return "not finished"
}

// count adds a round.
func (e *entry) count(s *lab.Scenario, o lab.Outcome, took time.Duration) {
	switch {
	case o.Cannot():
		e.Cannot++
		e.Unfit++
	case o.Unfit():
		e.Unfit++
	case o.Right():
		e.Right++
	default:
		e.Wrong++
		e.Reasons = append(e.Reasons, o.Reasons...)
	}
	for i := range o.Plays {
		p := &o.Plays[i]
		if p.Link != nil {
			for _, d := range p.Link.Directions {
				e.Bytes += d.Link.In.Bytes
			}
		}
		if len(p.Void) > 0 {
			e.Voids++
		} else if len(s.Expect.Diagnosis) > 0 {
			e.Said = append(e.Said, said(s, p.Client.Stdout))
		}
	}
	e.Seconds += took.Seconds()
	e.Date = time.Now().UTC().Format("2006-01-02")
}

// expected is the code that a scenario is about: of its first sentence that wants a verdict;
// "" when it is about something else.
func expected(s *lab.Scenario) (code, rank string) {
	for _, d := range s.Expect.Diagnosis {
		if d.Rank != "none" {
			return d.Code, d.Rank
		}
	}
	return "", ""
}

// said is what a document says to that.
func said(s *lab.Scenario, doc string) string {
	var rep struct {
		Verdicts []struct {
			Code string `json:"code"`
			Note bool   `json:"note"`
		} `json:"verdicts"`
	}
	if err := json.Unmarshal([]byte(doc), &rep); err != nil || len(rep.Verdicts) == 0 {
		return "nothing"
	}
	code, rank := expected(s)
	for _, v := range rep.Verdicts {
		if rank == "first" {
			break
		}
		if v.Code == code && (rank == "any" || !v.Note) {
			return code
		}
	}
	return rep.Verdicts[0].Code
}

// state is what is known of all scenarios, kept in a file.
type state struct {
	file     string
	programs []playedBy // the present one first
	entries  map[string]*entry
	recorded map[string]*entry // of a table that was written before; none = nil
}

// playedBy is a program whose plays count.
type playedBy struct {
	hash   []byte
	commit string // "" = the present one
}

// openState reads what is known; a file that is not there knows nothing. earlier are programs whose
// plays count, too, as COMMIT=FILE separated by commas.
func openState(file, fullbore, earlier string) (*state, error) {
	s := &state{file: file, entries: map[string]*entry{}}
	if err := s.addProgram("", fullbore); err != nil {
		return nil, err
	}
	for word := range strings.SplitSeq(earlier, ",") {
		commit, name, ok := strings.Cut(word, "=")
		if word == "" {
			continue
		}
		if !ok || commit == "" {
			return nil, fmt.Errorf("-earlier %s: want COMMIT=FILE", word)
		}
		if err := s.addProgram(commit, name); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s.entries)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (delete it to begin anew)", file, err)
	}
	return s, nil
}

func (s *state) addProgram(commit, name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	h := sha256.Sum256(data)
	s.programs = append(s.programs, playedBy{hash: h[:], commit: commit})
	return nil
}

// prepare finds a scenario's entry, or makes a new one when it or the program changed.
func (s *state) prepare(f file) error {
	var fresh string
	for _, p := range s.programs {
		hash, err := f.hash(p)
		if err != nil {
			return err
		}
		if fresh == "" {
			fresh = hash
		}
		if e := s.entries[f.key]; e != nil && e.Hash == hash {
			e.Name, e.earlier = f.scenario.Name, p.commit
			return nil
		}
	}
	s.entries[f.key] = &entry{Hash: fresh, Name: f.scenario.Name}
	return nil
}

// hash is of a program, the scenario and its facts.
func (f file) hash(p playedBy) (string, error) {
	h := sha256.New()
	h.Write(p.hash)
	for _, name := range []string{f.path, f.scenario.Facts} {
		if err := hashInto(h.Write, name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashInto adds a file, or all files of a folder; "" is none.
func hashInto(add func([]byte) (int, error), name string) error {
	if name == "" {
		return nil
	}
	return filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			_, err = add(data)
		}
		return err
	})
}

func (s *state) of(f file) *entry { return s.entries[f.key] }

// shown is what the table says of a scenario: what was recorded before, until it has been played as often as it has
// to be, or wrong.
func (s *state) shown(f file) *entry {
	e := s.of(f)
	if r := s.recorded[f.key]; r != nil && e.rounds() < wanted && e.Wrong == 0 {
		return r
	}
	return e
}

func (s *state) save() error {
	data, err := json.MarshalIndent(s.entries, "", " ")
	if err != nil {
		return err
	}
	return writeFile(s.file, data)
}

// writeFile replaces a file whole: whoever is interrupted leaves the old one or the new one.
func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}
