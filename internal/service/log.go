package service

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// lines is a writer that hands on whole lines. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	rest []byte
	line func(string)
}

// longest is how much is kept of a line that does not end.
const longest = 64 << 10

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			if len(l.rest) < longest {
				return len(p), nil
			}
			i = len(l.rest) - 1
		}
		if text := string(bytes.TrimRight(l.rest[:i+1], "\r\n")); text != "" {
			l.line(text)
		}
		l.rest = l.rest[i+1:]
	}
}

// flush hands on what has no end of line.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.line(string(l.rest))
		l.rest = nil
	}
}

// journal is where a service's lines go.
type journal interface {
	Info(text string) error
	Warning(text string) error
	io.Closer
}

var _ journal = (*fileJournal)(nil)

// fileJournal appends lines with their time to a file.
type fileJournal struct {
	mu  sync.Mutex
	w   io.WriteCloser
	now func() time.Time
}

func (f *fileJournal) write(kind, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp := f.now().Format(time.DateTime) + " "
	if len(text) > len(time.DateTime) {
		if _, err := time.Parse(time.DateTime, text[:len(time.DateTime)]); err == nil {
			stamp = "" // a test's line begins with its own
		}
	}
	_, err := fmt.Fprintf(f.w, "%s%s%s\r\n", stamp, kind, text)
	return err
}

// Info implements journal.
func (f *fileJournal) Info(text string) error { return f.write("", text) }

// Warning implements journal.
func (f *fileJournal) Warning(text string) error { return f.write("warning: ", text) }

// Close implements journal.
func (f *fileJournal) Close() error { return f.w.Close() }
