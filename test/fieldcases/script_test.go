//go:build linux

package fieldcases

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// This file is SCRIPT: one side of the control conversation, played by hand, for
// messages that no real program sends (spec iperf3-protocol §2 to §11).

// State bytes of the conversation.
const (
	testStart       = 1
	testRunning     = 2
	testEnd         = 4
	paramExchange   = 9
	createStreams   = 10
	exchangeResults = 13
	displayResults  = 14
	iperfDone       = 16
	serverError     = 0xfe
	accessDenied    = 0xff
)

// newCookie makes 36 characters and a NUL.
func newCookie() string { return strings.ToLower(rand.Text() + rand.Text())[:36] + "\x00" }

// wire is one end of a control connection.
type wire struct {
	net.Conn
	cookie string
}

// dial connects from the near end, from one of its addresses or "". The socket stays in
// the namespace whoever uses it.
func (b *bench) dial(from string) wire {
	b.Helper()
	d := net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	var c net.Conn
	b.check(b.net.Near.Do(func() (err error) {
		c, err = d.Dial("tcp", net.JoinHostPort(b.addr, port))
		return err
	}))
	b.Cleanup(func() { _ = c.Close() })
	b.check(c.SetDeadline(time.Now().Add(time.Minute)))
	return wire{c, newCookie()}
}

// visit connects from the near end and sends bytes.
func (b *bench) visit(payload string) wire {
	b.Helper()
	w := b.dial("")
	_, err := io.WriteString(w, payload)
	b.check(err)
	return w
}

// hello is a client that has sent its cookie and was asked for its parameters. A server
// that still ends the test before is asked again.
func (b *bench) hello(from string) wire {
	b.Helper()
	var w wire
	b.until("the server asks for parameters", func() bool {
		w = b.dial(from)
		_, err := io.WriteString(w, w.cookie)
		b.check(err)
		state, err := w.state()
		if err != nil || state != paramExchange && state != accessDenied {
			b.Fatalf("answer to a cookie: %x, %v", state, err)
		}
		return state == paramExchange
	})
	return w
}

func (w wire) state() (byte, error) {
	var s [1]byte
	_, err := io.ReadFull(w, s[:])
	return s[0], err
}

func (w wire) expect(states ...byte) error {
	for _, want := range states {
		got, err := w.state()
		if err != nil {
			return fmt.Errorf("waiting for state %d: %w", want, err)
		}
		if got != want {
			rest, _ := io.ReadAll(io.LimitReader(w, 8))
			return fmt.Errorf("got state %d %x, want %d", got, rest, want)
		}
	}
	return nil
}

func (w wire) send(states ...byte) error {
	_, err := w.Write(states)
	return err
}

func (w wire) sendDoc(doc string) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(doc))), doc...))
	return err
}

func (w wire) readDoc() ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(w, n[:]); err != nil {
		return nil, fmt.Errorf("length: %w", err)
	}
	doc := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(w, doc); err != nil {
		return nil, fmt.Errorf("document of %d bytes: %w", len(doc), err)
	}
	return doc, nil
}

// rest reads until the peer closes. What it takes longer than limit is an error.
func (w wire) rest(limit time.Duration) ([]byte, error) {
	if err := w.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	got, err := io.ReadAll(w)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return got, fmt.Errorf("still open after %v", limit)
	}
	return got, nil // a reset is an end, too
}

// refused is the code of an error answer: state 0xfe, code, errno.
func refused(answer []byte) (code uint32, ok bool) {
	if len(answer) != 9 || answer[0] != serverError {
		return 0, false
	}
	return binary.BigEndian.Uint32(answer[1:]), true
}

// params are the parameters of a short test with other keys added or replaced.
func params(extra string) string {
	p := `{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.21"`
	if extra != "" {
		p += "," + extra
	}
	return p + "}"
}

// figures are the results of an end with one stream; extra keys go in front.
func figures(extra string, bytes int64, retransmits int) string {
	return fmt.Sprintf(`{%s"cpu_util_total":1,"cpu_util_user":0.5,"cpu_util_system":0.5,"sender_has_retransmits":%d,"streams":[`+
		`{"id":1,"bytes":%d,"retransmits":%d,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}`,
		extra, retransmits, bytes, retransmits)
}

// play is a whole test of one sending stream. It returns the server's results.
func (b *bench) play(parameters, results string) []byte {
	b.Helper()
	w := b.hello("")
	b.check(w.sendDoc(parameters))
	b.check(w.expect(createStreams))
	stream := b.visit(w.cookie)
	b.check(w.expect(testStart, testRunning))
	_, err := stream.Write(make([]byte, 100_000))
	b.check(err)
	b.check(w.send(testEnd))
	b.check(w.expect(exchangeResults))
	b.check(w.sendDoc(results))
	doc, err := w.readDoc()
	b.check(err)
	b.check(w.expect(displayResults))
	b.check(w.send(iperfDone))
	return doc
}

// answer is a server for one client: it plays a whole test of one stream that it
// receives, and answers with the given results. The error comes when it is over.
func (b *bench) answer(results func(received int64) string) <-chan error {
	b.Helper()
	var ln net.Listener
	b.check(b.net.Far.Do(func() (err error) {
		ln, err = net.Listen("tcp", net.JoinHostPort(b.addr, port))
		return err
	}))
	b.Cleanup(func() { _ = ln.Close() })
	done := make(chan error, 1)
	go func() { done <- answer(ln, results) }()
	return done
}

func answer(ln net.Listener, results func(int64) string) error {
	defer ln.Close()
	w, err := accept(ln)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.send(paramExchange); err != nil {
		return err
	}
	if _, err := w.readDoc(); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if err := w.send(createStreams); err != nil {
		return err
	}
	stream, err := accept(ln)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := w.send(testStart, testRunning); err != nil {
		return err
	}
	received := make(chan int64, 1)
	go func() { // ends with the stream
		n, _ := io.Copy(io.Discard, stream)
		received <- n
	}()
	if err := w.expect(testEnd); err != nil {
		return err
	}
	if err := stream.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return err
	}
	if err := w.send(exchangeResults); err != nil {
		return err
	}
	if _, err := w.readDoc(); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := w.sendDoc(results(<-received)); err != nil {
		return err
	}
	if err := w.send(displayResults); err != nil {
		return err
	}
	return w.expect(iperfDone)
}

// accept takes a connection and its cookie.
func accept(ln net.Listener) (wire, error) {
	c, err := ln.Accept()
	if err != nil {
		return wire{}, err
	}
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return wire{}, err
	}
	got := make([]byte, 37)
	_, err = io.ReadFull(c, got)
	return wire{c, string(got)}, err
}

// documents reads the documents that a server has printed so far, each strictly.
func (b *bench) documents(text string) []doc {
	b.Helper()
	var all []doc
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the last one is being written
			return all
		}
		if err != nil {
			b.Fatalf("document %d: %v\n%s", len(all)+1, err, text)
		}
		all = append(all, b.parse(string(raw)))
	}
}

// loneSurrogate reports an escape of half a UTF-16 pair, which encoding/json takes.
func loneSurrogate(data []byte) error {
	escaped := func(at int) (rune, bool) {
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
			return 0, false
		}
		var r rune
		_, err := fmt.Sscanf(string(data[at+2:at+6]), "%04x", &r)
		return r, err == nil
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r, ok := escaped(i)
		switch {
		case !ok:
			i++ // another escape: skip what it escapes
		case r >= 0xd800 && r < 0xdc00:
			if low, ok := escaped(i + 6); !ok || low < 0xdc00 || low > 0xdfff {
				return fmt.Errorf("half a surrogate pair at %d", i)
			}
			i += 11
		case r >= 0xdc00 && r <= 0xdfff:
			return fmt.Errorf("half a surrogate pair at %d", i)
		default:
			i += 5
		}
	}
	return nil
}

// The strict reader refuses what it is there to refuse.
func TestStrictReader(t *testing.T) {
	for _, bad := range []string{
		`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `[{"a":1,"a":1}]`, `{"a":NaN}`, `{"a":Infinity}`, `{} {}`, `{}x`, "{\"a\":\"\xff\"}",
		`{"a":"\ud800"}`, `{"a":"\udc00x"}`, `{"a":"\ud800\u0041"}`, `{"a":"` + "\n" + `"}`, `{"a":1,}`, ``, `{"a":[1 2]}`,
	} {
		if _, err := strict([]byte(bad)); err == nil {
			t.Errorf("takes %q", bad)
		}
	}
	for _, good := range []string{`{"a":"\ud83d\ude00 \\ud800 \u0000"}`, "{}\n", `{"a":[{"b":1},{"b":1}],"c":{"a":null}}`} {
		if _, err := strict(bytes.TrimSpace([]byte(good))); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
