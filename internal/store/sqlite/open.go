// Package sqlite keeps the history in one SQLite file (modernc.org/sqlite, no cgo).
//
// The file is in WAL mode with synchronous=FULL: what Add has returned is on the disk, and a
// process that is killed at any byte leaves the file as it was before or after its last
// transaction. Writers wait for each other up to Wait. The schema is a list of numbered
// migrations, each one transaction; a file with a higher number than this program knows is
// left alone (store.ErrNewer).
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"

	"github.com/fullbore-net/fullbore/internal/store"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Wait is how long a call waits for other processes that write.
const Wait = 10 * time.Second

// Result codes of SQLite (sqlite.org/rescode.html). The low byte names the family.
const (
	codeBusy     = 5          // SQLITE_BUSY
	codeReadOnly = 8          // SQLITE_READONLY
	codeCorrupt  = 11         // SQLITE_CORRUPT
	codeCantOpen = 14         // SQLITE_CANTOPEN
	codeNotADB   = 26         // SQLITE_NOTADB
	codeShmSize  = 10 | 19<<8 // SQLITE_IOERR_SHMSIZE: the index of the WAL, which lies beside it, found no room
	codeShmMap   = 10 | 21<<8 // SQLITE_IOERR_SHMMAP
)

// Store implements store.Store.
type Store struct {
	db   *sql.DB
	path string
}

var _ store.Store = (*Store)(nil)

// Open opens or makes the file. Folders above it are made, for the user alone. The caller
// closes the store.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, marked(fmt.Errorf("history: %w", err))
	}
	// SQLite would make the file for everybody to read.
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, marked(fmt.Errorf("history: %w", err))
	} else if err := f.Close(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	db.SetMaxOpenConns(1) // one file, one writer: more would only wait for each other
	s := &Store{db: db, path: path}
	if err := s.prepare(ctx); err != nil {
		_ = db.Close()
		return nil, marked(fmt.Errorf("history %s: %w", path, plain(err)))
	}
	return s, nil
}

// unwritable is an error that is store.ErrUnwritable, too.
type unwritable struct{ error }

func (u unwritable) Is(target error) bool { return target == store.ErrUnwritable }
func (u unwritable) Unwrap() error        { return u.error }

// marked makes err store.ErrUnwritable as well, where the place takes no writes.
func marked(err error) error {
	var e *driver.Error
	code := 0
	if errors.As(err, &e) {
		code = e.Code() & 0xff
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || code == codeCantOpen || code == codeReadOnly {
		return unwritable{err}
	}
	return err
}

// OpenReading opens a file that is there for reading alone: on a medium, in a folder or with a mode that takes
// no writes, where Open gives store.ErrUnwritable. The caller closes the store.
func OpenReading(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	q := url.Values{}
	q.Set("mode", "ro")
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 { // else a reader must see what lies in it
		q.Set("immutable", "1")
	}
	q.Set("_busy_timeout", strconv.FormatInt(Wait.Milliseconds(), 10))
	db, err := sql.Open("sqlite", uri(path, q))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db, path: path}
	latest, err := latest()
	have := int64(0)
	if err == nil {
		have, err = s.version(ctx)
	}
	switch {
	case err != nil:
	case have > latest:
		err = fmt.Errorf("schema %d, this program knows %d: %w", have, latest, store.ErrNewer)
	case have < latest:
		err = fmt.Errorf("schema %d is older than this program's, %d, and cannot be brought up to date: %w", have, latest, store.ErrUnwritable)
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("history %s: %w", path, plain(err))
	}
	return s, nil
}

func dsn(path string) string {
	q := url.Values{}
	q.Set("_busy_timeout", strconv.FormatInt(Wait.Milliseconds(), 10))
	q.Set("_auto_vacuum", "2") // incremental: Prune gives space back
	q.Set("_journal_mode", "WAL")
	q.Set("_synchronous", "FULL")
	q.Set("_foreign_keys", "1")
	q.Set("_txlock", "immediate")
	return uri(path, q)
}

// uri names a file as SQLite's URIs do.
func uri(path string, q url.Values) string {
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" { // C:\… is file:///C:/…
		slashed = "/" + slashed
	}
	return "file:" + strings.ReplaceAll(url.PathEscape(slashed), "%2F", "/") + "?" + q.Encode()
}

// prepare brings the schema up to date. Several processes may do so at once: a migration is one
// transaction, so one of them wins, and the others look again.
func (s *Store) prepare(ctx context.Context) error {
	deadline := time.Now().Add(Wait)
	for {
		done, err := s.migrate(ctx)
		if done || errors.Is(err, store.ErrNewer) {
			return err
		}
		if !busy(err) && time.Now().After(deadline.Add(-Wait+time.Second)) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// busy reports that another process held the file.
func busy(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Code()&0xff == codeBusy
}

// plain says what people can do about an error of SQLite whose own words do not tell.
func plain(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code := e.Code(); {
	case code&0xff == codeCorrupt || code&0xff == codeNotADB:
		return fmt.Errorf("%w: the file is damaged or was never a history; move it away, and a new one is made", err)
	case code&0xff == codeReadOnly:
		return fmt.Errorf("%w: it can only be read here", err)
	case code == codeShmSize || code == codeShmMap:
		return fmt.Errorf("%w: its disk is full, it seems", err)
	}
	return err
}

// migrate applies what is missing; done says that the schema is this program's.
func (s *Store) migrate(ctx context.Context) (done bool, err error) {
	latest, err := latest()
	if err != nil {
		return false, err
	}
	have, err := s.version(ctx)
	switch {
	case err != nil:
		return false, err
	case have > latest:
		return false, fmt.Errorf("schema %d, this program knows %d: %w", have, latest, store.ErrNewer)
	case have == latest:
		return true, nil
	}
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return false, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return false, err
	}
	if _, err := p.Up(ctx); err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	return true, nil
}

// version is the number of the newest migration in the file, 0 for a new one.
func (s *Store) version(ctx context.Context) (int64, error) {
	var tables int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'`).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	var v sql.NullInt64
	err := s.db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v.Int64, err
}

// latest is the number of the newest migration that this program has.
func latest() (int64, error) {
	files, err := embedded.ReadDir("migrations")
	if err != nil {
		return 0, err
	}
	var n int64
	for _, f := range files {
		digits, _, _ := strings.Cut(f.Name(), "_")
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		n = max(n, v)
	}
	return n, nil
}

// Close implements store.Store.
func (s *Store) Close() error { return s.db.Close() }
