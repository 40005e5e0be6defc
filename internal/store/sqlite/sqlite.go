package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/store"
)

// rowBytes is what a row costs beside its texts, about.
const rowBytes = 200

// transact runs f in one transaction.
func (s *Store) transact(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback()
		return fmt.Errorf("history: %w", plain(err))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("history: %w", plain(err))
	}
	return nil
}

// Add implements store.Store.
func (s *Store) Add(ctx context.Context, e *store.Entry) error {
	form, data, err := store.Encode(e)
	if err != nil {
		return err
	}
	var original []byte
	if e.Original != nil {
		if original, err = store.Pack(e.Original); err != nil {
			return err
		}
	}
	return s.transact(ctx, func(tx *sql.Tx) error {
		var there int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM runs WHERE id = ?`, e.Record.ID).Scan(&there); err != nil {
			return err
		}
		if there > 0 {
			return fmt.Errorf("%s: %w", e.Record.ID, store.ErrExists)
		}
		r := e.Record
		r.Started = r.Started.UTC().Truncate(time.Millisecond)
		r.Bytes = int64(len(data) + len(original))
		text, err := json.Marshal(&r)
		if err != nil {
			return err
		}
		r.Bytes += int64(len(text)) + rowBytes
		if text, err = json.Marshal(&r); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO runs (id, started, kind, host, label, note, settings, keep, bytes, record) VALUES (?,?,?,?,?,?,?,?,?,?)`,
			r.ID, r.Started.UnixMilli(), r.Kind, r.Host, r.Label, r.Note, r.Settings, slices.Contains(r.Tags, store.KeepTag), r.Bytes, string(text)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO documents (id, form, data) VALUES (?,?,?)`, r.ID, form, data); err != nil {
			return err
		}
		if original != nil {
			if _, err := tx.ExecContext(ctx, `INSERT INTO originals (id, data) VALUES (?,?)`, r.ID, original); err != nil {
				return err
			}
		}
		for _, part := range r.Runs {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO parts (id, parent) VALUES (?,?)`, part, r.ID); err != nil {
				return err
			}
		}
		for _, tag := range r.Tags {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO tags (id, tag) VALUES (?,?)`, r.ID, tag); err != nil {
				return err
			}
		}
		return nil
	})
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, f store.Filter) ([]store.Record, error) {
	var where []string
	var args []any
	add := func(cond string, arg any) {
		where, args = append(where, cond), append(args, arg)
	}
	if f.Host != "" {
		add("host = ?", f.Host)
	}
	if f.Label != "" {
		add("label = ?", f.Label)
	}
	if f.Kind != "" {
		add("kind = ?", f.Kind)
	}
	if f.Settings != "" {
		add("settings = ?", f.Settings)
	}
	if !f.Since.IsZero() {
		add("started >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("started < ?", f.Until.UnixMilli())
	}
	for _, tag := range f.Tags {
		add("EXISTS (SELECT 1 FROM tags WHERE tags.id = runs.id AND tag = ?)", tag)
	}
	q := "SELECT record FROM runs"
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	q += " ORDER BY started DESC, id DESC"
	if f.Limit > 0 {
		q += " LIMIT " + strconv.Itoa(f.Limit)
	}
	rows, err := s.db.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer rows.Close()
	var out []store.Record
	for rows.Next() {
		var text string
		var r store.Record
		if err := rows.Scan(&text); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return out, nil
}

// leastPrefix is how many letters the beginning of an ID must have.
const leastPrefix = 4

// Find implements store.Store.
func (s *Store) Find(ctx context.Context, word string) (string, error) {
	if word == "last" || strings.HasPrefix(word, "last~") {
		back := 0
		if _, digits, ok := strings.Cut(word, "~"); ok {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 0 {
				return "", fmt.Errorf("%q: %w", word, store.ErrNotFound)
			}
			back = n
		}
		var id string
		err := s.db.QueryRowContext(ctx, `SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT 1 OFFSET ?`, back).Scan(&id)
		return found(word, id, err)
	}
	id := strings.ToUpper(word)
	if len(id) < leastPrefix || strings.ContainsFunc(id, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r > 'Z' }) {
		return "", fmt.Errorf("%q: %w", word, store.ErrNotFound)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id FROM runs WHERE id >= ?1 AND id < ?2
		UNION SELECT parent FROM parts WHERE id >= ?1 AND id < ?2 LIMIT 6`, id, id+"a") // "a" is above all letters of an ID
	if err != nil {
		return "", fmt.Errorf("history: %w", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return "", fmt.Errorf("history: %w", err)
		}
		ids = append(ids, one)
	}
	if err := rows.Err(); err != nil {
		return "", fmt.Errorf("history: %w", err)
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("%q: %w", word, store.ErrNotFound)
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("%q: %w: %s", word, store.ErrAmbiguous, strings.Join(ids, ", "))
}

func found(word, id string, err error) (string, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("%q: %w", word, store.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("history: %w", err)
	}
	return id, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, id string) (*store.Entry, error) {
	var text, form string
	var data, original []byte
	err := s.db.QueryRowContext(ctx, `SELECT record, form, documents.data, originals.data FROM runs JOIN documents USING (id) LEFT JOIN originals USING (id) WHERE runs.id = ?`, id).
		Scan(&text, &form, &data, &original)
	if _, err := found(id, id, err); err != nil {
		return nil, err
	}
	e := &store.Entry{}
	if err := json.Unmarshal([]byte(text), &e.Record); err != nil {
		return nil, fmt.Errorf("history: record of %s: %w", id, err)
	}
	if original != nil {
		if e.Original, err = store.Unpack(original); err != nil {
			return nil, fmt.Errorf("history: file of %s: %w", id, err)
		}
	}
	if err := store.Decode(e, form, data); err != nil {
		return nil, err
	}
	// A remark and tags may have changed since the document was written.
	r := &e.Record
	switch {
	case e.Run != nil:
		e.Run.Note = r.Note
	case e.Report != nil:
		e.Report.Note, e.Report.Tags = r.Note, slices.Clone(r.Tags)
	}
	return e, nil
}

// change rewrites the record of id.
func (s *Store) change(ctx context.Context, id string, f func(*store.Record)) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		var text string
		err := tx.QueryRowContext(ctx, `SELECT record FROM runs WHERE id = ?`, id).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%s: %w", id, store.ErrNotFound)
		}
		if err != nil {
			return err
		}
		var r store.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return err
		}
		before := len(text)
		f(&r)
		next, err := json.Marshal(&r)
		if err != nil {
			return err
		}
		r.Bytes += int64(len(next) - before)
		if next, err = json.Marshal(&r); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET note = ?, keep = ?, bytes = ?, record = ? WHERE id = ?`,
			r.Note, slices.Contains(r.Tags, store.KeepTag), r.Bytes, string(next), id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM tags WHERE id = ?`, id); err != nil {
			return err
		}
		for _, tag := range r.Tags {
			if _, err := tx.ExecContext(ctx, `INSERT INTO tags (id, tag) VALUES (?,?)`, id, tag); err != nil {
				return err
			}
		}
		return nil
	})
}

// Note implements store.Store.
func (s *Store) Note(ctx context.Context, id, text string) error {
	return s.change(ctx, id, func(r *store.Record) { r.Note = text })
}

// Tag implements store.Store.
func (s *Store) Tag(ctx context.Context, id string, add, remove []string) error {
	return s.change(ctx, id, func(r *store.Record) {
		tags := append(slices.Clone(r.Tags), add...)
		tags = slices.DeleteFunc(tags, func(t string) bool { return slices.Contains(remove, t) })
		slices.Sort(tags)
		r.Tags = slices.Compact(tags)
	})
}

// Prune implements store.Store.
func (s *Store) Prune(ctx context.Context, b store.Bounds) (store.Pruned, error) {
	var out store.Pruned
	err := s.transact(ctx, func(tx *sql.Tx) error {
		gone, err := pick(ctx, tx, b)
		if err != nil {
			return err
		}
		for id, bytes := range gone {
			out.Runs++
			out.Bytes += bytes
			if b.DryRun {
				continue
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || b.DryRun || out.Runs == 0 {
		return out, err
	}
	// Give the space back to the file system. It is no loss when another process reads: the
	// pages are used again, or given back the next time.
	if _, err := s.db.ExecContext(ctx, `PRAGMA incremental_vacuum`); err != nil && !busy(err) {
		return out, fmt.Errorf("history: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil && !busy(err) {
		return out, fmt.Errorf("history: %w", err)
	}
	return out, nil
}

// pick returns what goes by b, with its bytes.
func pick(ctx context.Context, tx *sql.Tx, b store.Bounds) (map[string]int64, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, started, bytes FROM runs WHERE keep = 0 ORDER BY started DESC, id DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	gone := map[string]int64{}
	var kept int64
	over := false
	for n := 0; rows.Next(); n++ {
		var id string
		var started, bytes int64
		if err := rows.Scan(&id, &started, &bytes); err != nil {
			return nil, err
		}
		over = over || b.MaxSize > 0 && kept+bytes > b.MaxSize // and so is all that is older
		if over || b.Keep > 0 && n >= b.Keep || !b.Before.IsZero() && started < b.Before.UnixMilli() {
			gone[id] = bytes
			continue
		}
		kept += bytes
	}
	return gone, rows.Err()
}

// Size implements store.Store.
func (s *Store) Size(ctx context.Context) (store.Size, error) {
	var out store.Size
	if err := s.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(bytes * keep), 0) FROM runs`).Scan(&out.Runs, &out.Bytes, &out.Protected); err != nil {
		return out, fmt.Errorf("history: %w", err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if st, err := os.Stat(s.path + suffix); err == nil {
			out.FileBytes += st.Size()
		}
	}
	return out, nil
}
