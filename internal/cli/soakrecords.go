package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/store"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The records of soaks that nobody named a place for lie in a folder beside the history, and are bounded as it is:
// the oldest go.

// recordEnding is that of a record's file.
const recordEnding = ".jsonl"

// recordsDir is the folder of records.
func (e *env) recordsDir() (string, error) {
	history, err := e.historyPath()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(history), "soak"), nil
}

// recordFile is a record in the folder.
type recordFile struct {
	name    string
	size    int64
	written time.Time // last
}

// recordsIn are those of a folder, the newest first; none where there is no folder.
func recordsIn(dir string) ([]recordFile, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("records of soaks: %w", err)
	}
	var out []recordFile
	for _, d := range list {
		st, err := d.Info()
		if err == nil && st.Mode().IsRegular() && filepath.Ext(d.Name()) == recordEnding {
			out = append(out, recordFile{d.Name(), st.Size(), st.ModTime()})
		}
	}
	slices.SortStableFunc(out, func(a, b recordFile) int { return b.written.Compare(a.written) })
	return out, nil
}

// soakRecords is how many records there are, and their bytes.
func (e *env) soakRecords() (files int, bytes int64) {
	dir, err := e.recordsDir()
	if err != nil {
		return 0, 0
	}
	list, _ := recordsIn(dir)
	for _, f := range list {
		bytes += f.size
	}
	return len(list), bytes
}

// stillWritten is how young the last byte of a record is that a soak may be adding to: one writes each second, but
// a machine may sleep.
const stillWritten = time.Hour

// pruneRecords removes records by b, whose Keep counts runs and is not read here. Those of runs with the tag keep,
// those that may still be written, and own stay, and do not count.
func (e *env) pruneRecords(ctx context.Context, s store.Store, b store.Bounds, own string) (gone store.Pruned, err error) {
	dir, err := e.recordsDir()
	if err != nil || b.MaxSize == 0 && b.Before.IsZero() {
		return gone, nil //nolint:nilerr // no folder, no records
	}
	list, err := recordsIn(dir)
	if err != nil || len(list) == 0 {
		return gone, err
	}
	spared, err := sparedRecords(ctx, s)
	if err != nil {
		return gone, err
	}
	kept, over := int64(0), false
	for _, f := range list {
		if spared[f.name] || f.name == own || e.Now().Sub(f.written) < stillWritten {
			continue
		}
		over = over || b.MaxSize > 0 && kept+f.size > b.MaxSize // and so is all that is older
		if !over && !f.written.Before(b.Before) {
			kept += f.size
			continue
		}
		if !b.DryRun {
			if rerr := os.Remove(filepath.Join(dir, f.name)); rerr != nil {
				err = errors.Join(err, rerr)
				continue
			}
		}
		gone.Runs++
		gone.Bytes += f.size
	}
	return gone, err
}

// sparedRecords are the names of records of runs with the tag keep.
func sparedRecords(ctx context.Context, s store.Store) (map[string]bool, error) {
	records, err := s.List(ctx, store.Filter{Kind: "soak", Tags: []string{store.KeepTag}})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, r := range records {
		entry, err := s.Get(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if rep := entry.Report; rep != nil && rep.Soak != nil {
			out[filepath.Base(rep.Soak.Record)] = true
		}
	}
	return out, nil
}

// boundRecords keeps the automatic bound. What goes wrong is said, and is no failure of the soak whose record own is.
func (e *env) boundRecords(ctx context.Context, own string) {
	limit, err := e.historyLimit()
	_, bytes := e.soakRecords()
	if err == nil && (limit == 0 || bytes <= limit) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	var gone store.Pruned
	if err == nil {
		var s store.Store
		if s, err = e.openHistory(ctx); err == nil {
			gone, err = e.pruneRecords(ctx, s, store.Bounds{MaxSize: limit / 10 * 9}, filepath.Base(own))
			_ = s.Close()
		}
	}
	if err != nil {
		fmt.Fprintf(e.Err, "fullbore: the records of soaks take %s, and cannot be made fewer: %v\n", units.ByteSize(bytes).IEC(), err)
	}
	if gone.Runs > 0 {
		fmt.Fprintf(e.Err, "fullbore: the records of soaks took more than %s: the oldest %d were removed; see fullbore prune --help\n", units.ByteSize(limit).IEC(), gone.Runs)
	}
}

// recordName is the n-th name for a new record, from 1; "" = none is kept.
func (s *soaking) recordName(n int) (string, error) {
	o, h := s.o, &s.book.Head
	if o.record != "" {
		return o.record, nil
	}
	dir := o.keep.out
	if dir == "" {
		if o.keep.noStore {
			return "", nil
		}
		var err error
		if dir, err = s.e.recordsDir(); err != nil {
			return "", nil //nolint:nilerr // the user keeps no history: then no record either
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", recordFault(err)
		}
	}
	r := store.Record{Started: h.Started, Label: o.keep.label, Host: h.Plan.Host, Kind: "soak"}
	if h.Self {
		r.Host = "self"
	}
	return filepath.Join(dir, numbered(fileBase(&r), n)+recordEnding), nil
}

// recordFault says that a record cannot be written, and what to do.
func recordFault(err error) error {
	return &UsageError{Msg: "the soak's record: " + strings.TrimPrefix(err.Error(), "soak: "), Hints: []string{"--record FILE writes it elsewhere, --no-store keeps none"}}
}
