package iperf3

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/result"
)

// TestText: the words of both releases. The 3.12 column was seen by sending it each
// code; 3.21's in its recorded outputs.
func TestText(t *testing.T) {
	for _, tc := range []struct {
		code, errno int
		r321, r312  string
	}{
		{0, 0, "no error", "no error"},
		{codeConnect, 111, "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: Connection refused", "unable to connect to server: Connection refused"},
		{codeMessage, 0, "received an unknown control message (ensure other side is iperf3 and not iperf)", "received an unknown control message"},
		{codeCtrlClose, 104, "control socket has closed unexpectedly", "control socket has closed unexpectedly"},
		{codeAccessDenied, 0, "the server is busy running a test. try again later", "the server is busy running a test. try again later"},
		{codeRecvParams, 0, "unable to receive parameters from client: ", "unable to receive parameters from client: "},
		{codeRecvCookie, 107, "unable to receive cookie at server: Transport endpoint is not connected", "unable to receive cookie at server: Transport endpoint is not connected"},
		{codeStreamListen, 93, "unable to start stream listener: Protocol not supported", "unable to start stream listener: Protocol not supported"},
		{codeMaxDuration, 13, "client's requested duration exceeds the server's maximum permitted limit", "int_errno=37: Permission denied"},
		{codeDuration, 0, "test duration valid values are 0 to 86400 seconds", "test duration too long (maximum = 86400 seconds)"},
		{codeOmit, 0, "bogus value for --omit (maximum = 600 seconds)", "bogus value for --omit"},
		{codeMSS, 0, "TCP MSS too large (maximum = 32767 bytes)", "TCP MSS too large (maximum = 9216 bytes)"},
		{codeDurationExpired, 0, "server test duration expired: ", "int_errno=160: "},
		{codeCongestion, 2, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host", "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host"},
		{codeFile, 2, "unable to open -F file: No such file or directory", "unable to open -F file: No such file or directory"},
		{9999, 5, "int_errno=9999: Input/output error", "int_errno=9999: Input/output error"},
		{9999, 5000, "int_errno=9999: Unknown error 5000", "int_errno=9999: Unknown error 5000"},
	} {
		if got := Text(tc.code, tc.errno, "3.21"); got != tc.r321 {
			t.Errorf("%d, 3.21: %q, want %q", tc.code, got, tc.r321)
		}
		if got := Text(tc.code, tc.errno, "3.12"); got != tc.r312 {
			t.Errorf("%d, 3.12: %q, want %q", tc.code, got, tc.r312)
		}
	}
}

func TestInWords(t *testing.T) {
	if InWords(nil, result.Client, "3.21") != nil {
		t.Error("nil")
	}
	own := &result.Error{Code: "x", Text: "our words"}
	if InWords(own, result.Client, "3.21") != own {
		t.Error("an error without number lost its text")
	}
	e := &result.Error{Code: "peer-closed", Text: "our words", Number: codeCtrlClose, Remote: true}
	if got := InWords(e, result.Client, "3.21"); got.Text != "control socket has closed unexpectedly" || !got.Remote || e.Text != "our words" {
		t.Errorf("%+v", got)
	}
	if got := InWords(e, result.Server, "3.12"); got.Text != "the client has unexpectedly closed the connection" {
		t.Errorf("%+v", got)
	}
}

func TestErrno(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, 111},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, 2},
		{fmt.Errorf("x: %w", os.ErrDeadlineExceeded), 110},
		{context.DeadlineExceeded, 110},
		{&net.DNSError{Err: "no such host"}, 0},
		{fmt.Errorf("something"), 0},
	} {
		if got := errno(tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
}

// TestStates: names for people, none missing.
func TestStates(t *testing.T) {
	for s, want := range map[State]string{StateTestEnd: "TEST_END", FrameHello: "fullbore hello", 77: "state 77", -5: "state -5"} {
		if s.String() != want {
			t.Errorf("%d: %s", int8(s), s)
		}
	}
	doc, err := json.Marshal(ext.QueueFrame{Position: 1})
	if err != nil || !bytes.Equal(doc, []byte(`{"position":1}`)) {
		t.Errorf("%s", doc)
	}
}
