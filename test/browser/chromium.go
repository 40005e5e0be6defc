// Package browser opens the pages that fullbore writes in a real browser and looks at what
// it makes of them: headless Chromium, spoken to over two pipes (--remote-debugging-pipe),
// so that no port and no web socket is needed.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrNoBrowser says that no Chromium is installed.
var ErrNoBrowser = errors.New("no chromium found")

// answerTime is how long one command may take, on a machine that is busy with other things.
const answerTime = 60 * time.Second

// Browser is one headless Chromium with a profile of its own.
type Browser struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	profile string
	stderr  *strings.Builder

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	pages   map[string]*Page
	ended   error
	done    chan struct{} // closed when the reader has ended
}

type reply struct {
	Result json.RawMessage
	Err    error
}

type message struct {
	ID      int             `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts the browser. Close ends it.
func Start() (*Browser, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, ErrNoBrowser
	}
	profile, err := os.MkdirTemp("", "fullbore-browser")
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile, waiting: map[int]chan reply{}, pages: map[string]*Page{}, done: make(chan struct{}), stderr: &strings.Builder{}}
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	b.cmd.Stderr = b.stderr
	theirIn, ourOut, err := os.Pipe() // their file 3: what they read
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	ourIn, theirOut, err := os.Pipe() // their file 4: what they write
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close(), os.RemoveAll(profile))
	}
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	err = b.cmd.Start()
	theirIn.Close()  //nolint:errcheck,gosec // the child has its own
	theirOut.Close() //nolint:errcheck,gosec // the child has its own
	if err != nil {
		return nil, errors.Join(err, ourIn.Close(), ourOut.Close(), os.RemoveAll(profile))
	}
	b.in = ourOut
	go b.read(ourIn)
	return b, nil
}

// Close ends the browser and removes its profile.
func (b *Browser) Close() error {
	_ = b.call("", "Browser.close", nil, nil) // it may be gone
	b.in.Close()                              //nolint:errcheck,gosec // it is over
	left := make(chan error, 1)
	go func() { left <- b.cmd.Wait() }()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		b.cmd.Process.Kill() //nolint:errcheck,gosec // it may have ended by now
		<-left
	}
	<-b.done
	return os.RemoveAll(b.profile)
}

// read hands answers to those who wait and events to their pages, until the pipe ends.
func (b *Browser) read(from io.ReadCloser) {
	defer close(b.done)
	defer from.Close() //nolint:errcheck // read only
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.ended = fmt.Errorf("the browser ended: %w", err)
			for id, c := range b.waiting {
				c <- reply{Err: b.ended}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			c := b.waiting[m.ID]
			delete(b.waiting, m.ID)
			b.mu.Unlock()
			if c == nil {
				continue
			}
			if m.Error != nil {
				c <- reply{Err: errors.New(m.Error.Message)}
			} else {
				c <- reply{Result: m.Result}
			}
			continue
		}
		p := b.pages[m.Session]
		b.mu.Unlock()
		if p != nil {
			p.event(m.Method, m.Params)
		}
	}
}

// call sends one command and reads its answer into out, which may be nil.
func (b *Browser) call(session, method string, params, out any) error {
	if params == nil {
		params = struct{}{}
	}
	c := make(chan reply, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", method, b.ended)
	}
	b.next++
	id := b.next
	b.waiting[id] = c
	m := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	select {
	case a := <-c:
		if a.Err != nil {
			return fmt.Errorf("%s: %w", method, a.Err)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(a.Result, out)
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer within %v", method, answerTime)
	}
}
