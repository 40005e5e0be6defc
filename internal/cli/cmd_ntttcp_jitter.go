package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/fullbore-net/fullbore/internal/traffic"
)

// arrivals is the file of -jm: a line for each message, with the clocks of both ends. It is safe
// for concurrent use.
type arrivals struct {
	file io.Closer
	end  string // of a line

	mu  sync.Mutex
	w   *bufio.Writer
	err error
}

// newArrivals appends to the file, as the original does, and heads what follows.
func newArrivals(name, end string) (*arrivals, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	a := &arrivals{file: f, end: end, w: bufio.NewWriterSize(f, 64<<10)}
	a.line("packet_num,send_count,send_freq,recv_count,recv_freq")
	return a, nil
}

func (a *arrivals) line(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := fmt.Fprintf(a.w, format+a.end, args...); err != nil && a.err == nil {
		a.err = err
	}
}

// message writes one line.
func (a *arrivals) message(m traffic.Message) {
	a.line("%d,%d,%d,%d,%d", m.Number, m.Counter, m.Frequency, m.At, int64(1e9))
}

// Close writes what is held back. It returns the first error of all that was written.
func (a *arrivals) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.err, a.w.Flush(), a.file.Close())
}
