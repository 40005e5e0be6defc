package iperf3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// refused turns a message that ends the test into its error; nil for any other.
func (r *clientRun) refused(m message) *result.Error {
	switch m.State {
	case StateAccessDenied:
		return &result.Error{
			Code: "busy", Remote: true, Number: codeAccessDenied,
			Text: "the server is busy with another test; try again later, or use a server that takes many at once (fullbore serve)",
		}
	case StateServerTerminate:
		return &result.Error{Code: "server-terminated", Remote: true, Number: codeServerTerm, Text: "the server was stopped by its operator"}
	case StateServerError:
		return r.serverError(*m.Err)
	}
	return nil
}

// serverError words what the server said.
func (r *clientRun) serverError(w WireError) *result.Error {
	e := &result.Error{Code: "refused", Remote: true, Reported: true, Number: int(w.Code), Errno: max(0, int(w.Errno))}
	e.Text = "the server says: " + trimColon(Text(e.Number, e.Errno, DefaultRelease))
	switch {
	case e.Number == codeAuth:
		e.Code = "auth"
		e.Text = "the server refused the login"
		if r.p.Auth == nil {
			e.Text = "the server wants a login: give a user name and its public key"
		} else {
			e.Text += fmt.Sprintf(" of user %q: check name, password and key, that both clocks agree, and the padding (servers up to 3.16 need the old one)", r.p.Auth.Username)
		}
	case e.Number == codeTotalRate:
		e.Code = "limit"
		e.Text = "the server allows less than this rate"
		if l := r.limits(); l.MaxRate > 0 {
			e.Text = fmt.Sprintf("the server allows %d bit/s together", l.MaxRate)
		}
		if each := max(r.p.Bitrate, r.p.FQRate); each > 0 {
			n := int64(len(directions(r.p.Direction, r.p.Streams)))
			e.Text += fmt.Sprintf(", asked for were %d bit/s (streams: %d of %d bit/s)", n*each, n, each)
		}
	case e.Number == codeMaxDuration:
		e.Code = "limit"
		e.Text = fmt.Sprintf("the server allows only shorter tests than the %v asked for", r.p.Duration+r.p.Omit)
		if l := r.limits(); l.MaxDuration > 0 {
			e.Text = fmt.Sprintf("the server allows tests of %v at most, asked for were %v", time.Duration(l.MaxDuration*float64(time.Second)), r.p.Duration+r.p.Omit)
		}
		if r.p.Duration == 0 {
			e.Text = "the server wants a time limit: give one"
		}
	case e.Number == codeAffinity && r.p.RemoteAffinity != nil:
		e.Code, e.Text = "option", fmt.Sprintf("the server cannot pin itself to its CPU %d, as was asked for", *r.p.RemoteAffinity)
	case e.Number == codeNumStreams:
		e.Code = "limit"
	case e.Number == 0:
		e.Text = "the server reported an error without saying which"
	}
	if r.flowed && e.Code == "refused" {
		e.Code = "server-error"
	}
	return e
}

// limits are what a fullbore server said it allows.
func (r *clientRun) limits() ext.Limits {
	if r.hello == nil || r.hello.Limits == nil {
		return ext.Limits{}
	}
	return *r.hello.Limits
}

// trimColon takes off the ": " that iperf3 leaves when there is no errno.
func trimColon(s string) string { return string(bytes.TrimRight([]byte(s), ": \n")) }

// unknown words a message that does not belong here.
func (r *clientRun) unknown(m message) error {
	what := m.State.String()
	if m.State == 0 {
		what = "a document"
	}
	return &result.Error{Code: "protocol", Remote: true, Number: codeMessage, Text: fmt.Sprintf("the server sent %s where it does not belong", what)}
}

// closedError words the loss of the control connection.
func (r *clientRun) closedError(err error) error {
	var told *result.Error
	if errors.As(err, &told) {
		return told
	}
	if errors.Is(err, errTimeout) {
		return &result.Error{
			Code: "no-answer", Remote: true, Number: codeSendMessage, Errno: linuxETIMEDOUT,
			Text: fmt.Sprintf("the server did not read its control connection for %v: it is frozen, or the path is cut", r.to.Answer),
		}
	}
	if !errors.Is(err, errPeerClosed) && !isNetError(err) {
		return &result.Error{Code: "protocol", Remote: true, Number: codeRecvMessage, Text: "the server's message makes no sense: " + err.Error()}
	}
	e := &result.Error{Code: "peer-closed", Remote: true, Number: codeCtrlClose, Errno: errno(err)}
	if r.rejected() {
		e.Text = rejectedText
		return e
	}
	when := "in mid-test"
	if !r.flowed {
		when = "while the test was being set up"
	}
	switch e.Errno {
	case 0:
		e.Text = fmt.Sprintf("the server closed the connection %s: it ended or gave up", when)
	case linuxETIMEDOUT:
		e.Text = fmt.Sprintf("the server's system stopped answering %s: the path is cut, or the host is down", when)
	default:
		e.Text = fmt.Sprintf("the connection to the server broke %s: %s", when, Strerror(e.Errno))
	}
	return e
}

func isNetError(err error) bool {
	var ne net.Error
	return errors.As(err, &ne)
}

// waitError words an answer that did not come.
func (r *clientRun) waitError(err error, what string) error {
	if errors.Is(err, errTimeout) {
		return &result.Error{
			Code: "no-answer", Remote: true, Number: codeRecvMessage, Errno: linuxETIMEDOUT,
			Text: fmt.Sprintf("waited %v for the server %s: it is frozen, or the path is cut", r.answer().Round(time.Millisecond), what),
		}
	}
	if ctxErr := asResult(err); ctxErr != nil {
		return ctxErr
	}
	return r.closedError(err)
}

// greetingError words that the first answer did not come.
func (r *clientRun) greetingError(err error) error {
	switch {
	case asResult(err) == nil && len(r.ctl.firstBytes()) > 0:
		return r.notIperf3()
	case errors.Is(err, errTimeout):
		return &result.Error{
			Code: "silent-peer", Remote: true, Number: codeRecvMessage, Errno: linuxETIMEDOUT,
			Text: fmt.Sprintf("%s accepted the connection but said nothing for %v: it does not speak iperf3's protocol (iperf 2 behaves so), or an iperf3 server there is stuck with another client",
				r.addr, r.answer().Round(time.Millisecond)),
		}
	case asResult(err) != nil:
		return asResult(err)
	case errors.Is(err, errPeerClosed):
		return &result.Error{
			Code: "peer-closed", Remote: true, Number: codeCtrlClose, Errno: errno(err),
			Text: fmt.Sprintf("%s accepted the connection and closed it without a word: no iperf3 server (iperf 2 may behave so), or one that does not let this address in", r.addr),
		}
	}
	return r.closedError(err)
}

// notIperf3 names a peer that speaks something else.
func (r *clientRun) notIperf3() error {
	first := r.ctl.firstBytes()
	what := foreignServer(first)
	if what == "" {
		what = fmt.Sprintf("something that is not iperf3 (it began with %q)", first[:min(len(first), 16)])
	}
	return &result.Error{Code: "not-iperf3", Remote: true, Number: codeMessage, Text: fmt.Sprintf("at %s answers %s", r.addr, what)}
}

// foreignServer names the protocol that a server's first bytes belong to, "" = unknown.
func foreignServer(b []byte) string {
	for _, p := range []struct{ prefix, name string }{
		// iperf 2.1 acknowledges a client's header with type 2 and length 28, some 8 s after
		// it got too short a one (seen with 2.1.8).
		{"\x00\x00\x00\x02\x00\x00\x00\x1c", "an iperf 2 server: start iperf3 -s or fullbore serve there, or use iperf 2 here"},
		{"SSH-", "an SSH server"},
		{"HTTP/", "a web server"},
		{"\x15\x03", "a TLS server"},
		{"\x16\x03", "a TLS server"},
		{"220 ", "a mail or FTP server"},
		{"220-", "a mail or FTP server"},
		{"* OK", "a mail server"},
		{"+OK", "a mail server"},
		{"RFB ", "a remote desktop (VNC)"},
	} {
		if bytes.HasPrefix(b, []byte(p.prefix)) {
			return p.name
		}
	}
	return ""
}

// consentError words why the server did not accept the parameters.
func (r *clientRun) consentError(err error) error {
	if errors.Is(err, errPeerClosed) && errno(err) == 0 {
		// 3.21 says nothing when a login fails, older ones nothing about parameters or limits (spec §11).
		e := &result.Error{Code: "refused", Remote: true, Number: codeCtrlClose, Text: "the server closed the connection when it had read the parameters, without a reason"}
		if r.p.Auth != nil {
			e.Code = "auth"
			e.Text += fmt.Sprintf("; iperf3 3.21 does that when a login fails: check user %q, password, key and clocks", r.p.Auth.Username)
		} else {
			e.Text += "; iperf3 does that when it wants a login (3.21), or when a limit of the server is exceeded (before 3.21)"
		}
		return e
	}
	return r.waitError(err, "to accept the parameters")
}

// deadStreams words that all streams ended while the control connection lives.
func (r *clientRun) deadStreams(err error) error {
	if long := tooLong(err); long != nil {
		return long
	}
	e := &result.Error{Code: "streams-closed", Remote: true, Number: codeStreamClose, Errno: errno(err), Text: "the server closed all streams in mid-test, and does not say why"}
	if err != nil {
		e.Number = codeStreamRead
		if r.p.Direction == plan.Up {
			e.Number = codeStreamWrite
		}
		e.Text = "all streams broke in mid-test: " + reason(err)
	}
	if r.rejected() {
		e.Text = rejectedText
	}
	return e
}

// reason is a socket's error without the addresses that Go puts before it.
func reason(err error) string {
	if n := errno(err); n != 0 {
		return Strerror(n)
	}
	return strings.TrimPrefix(err.Error(), "traffic: ")
}

const rejectedText = "the server rejected the streams of its own direction: iperf3 before 3.7 cannot send and receive at once; test the directions one after the other"

// rejected reports that a bidirectional test's receiving streams ended by themselves with
// not more than the one byte of ACCESS_DENIED each, while those of the other direction
// lived (spec §16.3).
func (r *clientRun) rejected() bool {
	if r.p.Direction != plan.Both || r.eng == nil || !r.flowed {
		return false
	}
	for _, f := range r.eng.Snapshot().Flows {
		switch over := f.EOF || f.Err != nil; {
		case f.Send && f.Err != nil, !f.Send && (!over || f.Total.Bytes+f.OmittedBytes > 1):
			return false
		}
	}
	return true
}

// asResult returns the *result.Error inside err, nil when there is none.
func asResult(err error) *result.Error {
	var e *result.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// asError makes every error one that a Run can hold.
func (r *clientRun) asError(ctx context.Context, err error) *result.Error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	if e := asResult(err); e != nil {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &result.Error{Code: "interrupted", Interrupted: true, Text: "the test was cancelled: " + err.Error(), Number: codeClientTerm}
	}
	return &result.Error{Code: "failed", Text: err.Error(), Errno: errno(err)}
}
