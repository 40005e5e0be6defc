package soak

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// syncEach is how often the record is forced to the disk, for power cuts. What was written
// survives the end of the program without it.
const syncEach = time.Minute

// Record is the file of a soak. It is not safe for concurrent use.
type Record struct {
	f      *os.File
	synced time.Time
	size   int64
	err    error
}

// Create begins a record; the file must not be there yet.
func Create(file string, h Head) (*Record, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	r := &Record{f: f, synced: time.Now()}
	if err := r.Append(Line{Head: &h}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return r, nil
}

// Open reads a record into a new Book and goes on with it: an unfinished last line is cut off.
func Open(file string) (*Record, *Book, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("soak: %w", err)
	}
	b, whole, err := Read(f)
	if err == nil {
		err = f.Truncate(whole)
	}
	_ = f.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("soak: %s: %w", file, err)
	}
	if f, err = os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, nil, fmt.Errorf("soak: %w", err)
	}
	return &Record{f: f, synced: time.Now(), size: whole}, b, nil
}

// Append writes a line with one write. After an error it does nothing but repeat it: a hole in the
// middle would be worse than an end.
func (r *Record) Append(l Line) error {
	if r == nil || r.err != nil {
		return r.broken()
	}
	data, err := json.Marshal(l)
	if err == nil {
		_, err = r.f.Write(append(data, '\n'))
	}
	if err == nil && time.Since(r.synced) > syncEach {
		r.synced = time.Now()
		err = r.f.Sync()
	}
	if err != nil {
		r.err = fmt.Errorf("soak: write the record: %w", err)
	}
	r.size += int64(len(data)) + 1
	return r.err
}

func (r *Record) broken() error {
	if r == nil {
		return nil
	}
	return r.err
}

// Size is the length of the file in bytes.
func (r *Record) Size() int64 { return r.size }

// Close forces the record to the disk and closes it.
func (r *Record) Close() error {
	if r == nil {
		return nil
	}
	err := errors.Join(r.f.Sync(), r.f.Close())
	if r.err != nil {
		return r.err
	}
	return err
}

// maxLine bounds a line of a record; ours have a few hundred bytes, the head some thousand.
const maxLine = 1 << 20

// ErrNoHead: the file does not begin as a record does.
var ErrNoHead = errors.New("it is no record of a soak")

// Read reads a record up to its last whole line, whose end is at byte whole. A line before that
// which makes no sense is an error; an unfinished last one is not: the writer was killed.
func Read(in io.Reader) (b *Book, whole int64, err error) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for number := 1; ; number++ {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			if b == nil {
				return nil, 0, ErrNoHead
			}
			return b, whole, nil
		}
		var l Line
		if err == nil {
			err = strictLine(raw, &l)
		}
		switch {
		case b == nil && (err != nil || l.Head == nil):
			return nil, 0, ErrNoHead
		case err != nil:
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		case b == nil:
			if l.Head.Version != Version || len(l.Head.Steps) == 0 {
				return nil, 0, fmt.Errorf("it is a record of version %d with %d steps of load; this program reads version %d", l.Head.Version, len(l.Head.Steps), Version)
			}
			b = NewBook(*l.Head)
		default:
			b.Add(l)
		}
		whole += int64(len(raw))
	}
}

// strictLine decodes a line with its end.
func strictLine(raw []byte, l *Line) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(l)
}

// readLine returns the next line with its end; io.EOF where no whole one is left.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(out) > maxLine:
			return nil, errors.New("the line is too long")
		}
	}
}
