package iperf3

import (
	"fmt"

	"github.com/fullbore-net/fullbore/result"
)

// iperf3's numeric error codes that this package gives or understands. They are the
// same in all releases but for 155 (spec §11).
const (
	codeDuration        = 5
	codeNumStreams      = 6
	codeBlockSize       = 7
	codeWindow          = 8
	codeMSS             = 10
	codeOmit            = 12
	codeFile            = 14
	codeBurst           = 15
	codeUDPBlockSize    = 20
	codeTOS             = 21
	codeTotalRate       = 27
	codeUDPFile         = 34
	codeMaxDuration     = 37
	codeInitTest        = 101
	codeListen          = 102
	codeConnect         = 103
	codeSendCookie      = 105
	codeRecvCookie      = 106
	codeCtrlWrite       = 107
	codeCtrlRead        = 108
	codeCtrlClose       = 109
	codeMessage         = 110
	codeSendMessage     = 111
	codeRecvMessage     = 112
	codeSendParams      = 113
	codeRecvParams      = 114
	codeSendResults     = 116
	codeRecvResults     = 117
	codeClientTerm      = 119
	codeServerTerm      = 120
	codeAccessDenied    = 121
	codeSetMSS          = 123
	codeSetBuf          = 124
	codeSetTOS          = 125
	codeSetFlow         = 127
	codeProtocol        = 131
	codeAffinity        = 132
	codeCongestion      = 134
	codeSetPacing       = 140
	codeBufferMismatch  = 141
	codeAuth            = 142
	codeBindDev         = 143
	codeNoMsg           = 144
	codeDontFragment    = 145
	codeUserTimeout     = 148
	codeDurationExpired = 160
	codeCreateStream    = 200
	codeInitStream      = 201
	codeStreamListen    = 202
	codeStreamConnect   = 203
	codeStreamAccept    = 204
	codeStreamWrite     = 205
	codeStreamRead      = 206
	codeStreamClose     = 207
	codeStreamID        = 208
)

// text is iperf3's wording for a code. With system, the release appends ": " and the
// text of errno (nothing after the colon when errno is 0).
type text struct {
	words  string
	system bool
}

// texts321 are the texts of 3.21: from its recorded outputs, and for codes that no
// recording shows from its documentation of the same table. Texts that 3.12 shares were
// seen by sending it each code.
var texts321 = map[int]text{
	0:                   {"no error", false},
	1:                   {"cannot be both server and client", false},
	2:                   {"must either be a client (-c) or server (-s)", false},
	3:                   {"some option you are trying to set is server only", false},
	4:                   {"some option you are trying to set is client only", false},
	codeDuration:        {"test duration valid values are 0 to 86400 seconds", false},
	codeNumStreams:      {"number of parallel streams too large (maximum = 128)", false},
	codeBlockSize:       {"block size too large (maximum = 1048576 bytes)", false},
	codeWindow:          {"socket buffer size too large (maximum = 536870912 bytes)", false},
	9:                   {"invalid report interval (min = 0.1, max = 60 seconds)", false},
	codeMSS:             {"TCP MSS too large (maximum = 32767 bytes)", false},
	11:                  {"this OS does not support sendfile", false},
	codeOmit:            {"bogus value for --omit (maximum = 600 seconds)", false},
	13:                  {"an option you are trying to set is not implemented yet", false},
	codeFile:            {"unable to open -F file", true},
	codeBurst:           {"invalid burst count (maximum = 1000)", false},
	16:                  {"only one test end condition (-t, -n, -k) may be specified", false},
	17:                  {"unable to open log file", true},
	18:                  {"no SCTP support available", false},
	19:                  {"--bind must be specified to use --cport", false},
	codeUDPBlockSize:    {"block size invalid (minimum = 16 bytes, maximum = 65507 bytes)", false},
	codeTOS:             {"bad TOS value (must be between 0 and 255 inclusive)", false},
	22:                  {"you must specify a username, password, and path to a valid RSA public key", false},
	23:                  {"you must specify a path to a valid RSA private key and a user credential file", false},
	24:                  {"bad format specifier (valid formats are in the set [kmgtKMGT])", false},
	25:                  {"cannot be both reverse and bidirectional", false},
	26:                  {"port number must be between 1 and 65535 inclusive", false},
	codeTotalRate:       {"total required bandwidth is larger than server limit", false},
	28:                  {"invalid time interval for calculating average data rate", false},
	29:                  {"skew threshold must be a positive number", false},
	30:                  {"idle timeout parameter is not positive or larger than allowed limit", false},
	31:                  {"receive timeout value is incorrect or not in range", true},
	32:                  {"client receive timeout is valid only in receiving mode", true},
	33:                  {"send timeout value is incorrect or not in range", true},
	codeUDPFile:         {"cannot transfer file using UDP", false},
	35:                  {"cannot access authorized users file", false},
	36:                  {"control connection Keepalive period should be larger than the full retry period (interval * count)", true},
	codeMaxDuration:     {"client's requested duration exceeds the server's maximum permitted limit", false},
	38:                  {"invalid unit value or suffix", false},
	100:                 {"unable to create a new test", true},
	codeInitTest:        {"test initialization failed", true},
	codeListen:          {"unable to start listener for connections", true},
	codeConnect:         {"unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.", true},
	104:                 {"unable to accept connection from client", true},
	codeSendCookie:      {"unable to send cookie to server", true},
	codeRecvCookie:      {"unable to receive cookie at server", true},
	codeCtrlWrite:       {"unable to write to the control socket", true},
	codeCtrlRead:        {"unable to read from the control socket", true},
	codeCtrlClose:       {"control socket has closed unexpectedly", false},
	codeMessage:         {"received an unknown control message (ensure other side is iperf3 and not iperf)", false},
	codeSendMessage:     {"unable to send control message - port may not be available, the other side may have stopped running, etc.", true},
	codeRecvMessage:     {"unable to receive control message - port may not be available, the other side may have stopped running, etc.", true},
	codeSendParams:      {"unable to send parameters to server", true},
	codeRecvParams:      {"unable to receive parameters from client", true},
	115:                 {"unable to package results", true},
	codeSendResults:     {"unable to send results", true},
	codeRecvResults:     {"unable to receive results", true},
	118:                 {"select failed", true},
	codeClientTerm:      {"the client has terminated", false},
	codeServerTerm:      {"the server has terminated", false},
	codeAccessDenied:    {"the server is busy running a test. try again later", false},
	122:                 {"unable to set TCP/SCTP NODELAY", true},
	codeSetMSS:          {"unable to set TCP/SCTP MSS", true},
	codeSetBuf:          {"unable to set socket buffer size", true},
	codeSetTOS:          {"unable to set IP TOS", true},
	126:                 {"unable to set IPv6 traffic class", true},
	codeSetFlow:         {"unable to set IPv6 flow label", false},
	128:                 {"unable to reuse address on socket", true},
	129:                 {"unable to set socket to non-blocking", true},
	130:                 {"unable to set socket window size", true},
	codeProtocol:        {"protocol does not exist", false},
	codeAffinity:        {"unable to set CPU affinity", true},
	133:                 {"unable to become a daemon", true},
	codeCongestion:      {"unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host", false},
	135:                 {"unable to write PID file", true},
	136:                 {"Unable to set/reset IPV6_V6ONLY", true},
	137:                 {"unable to set SCTP_DISABLE_FRAGMENTS", true},
	138:                 {"unable to set SCTP_INIT num of SCTP streams\n", true}, // the line break is theirs
	codeSetPacing:       {"unable to set socket pacing", true},
	codeBufferMismatch:  {"socket buffer size not set correctly", false},
	codeAuth:            {"test authorization failed", false},
	codeBindDev:         {"Unable to bind-to-device (check perror, maybe permissions?)", false},
	codeNoMsg:           {"idle timeout for receiving data", false},
	codeDontFragment:    {"unable to set IP Do-Not-Fragment flag", false},
	146:                 {"`<ip>%<dev>` is not supported as system does not support bind to device", false},
	147:                 {"host device name (ip%<dev>) is supported (and required) only for IPv6 link-local address", false},
	codeUserTimeout:     {"unable to set TCP USER_TIMEOUT", true},
	150:                 {"unable to create thread", true},
	151:                 {"unable to cancel thread", true},
	152:                 {"unable to join thread", true},
	153:                 {"unable to create thread attributes", true},
	154:                 {"unable to destroy thread attributes", true},
	155:                 {"unable to set socket keepalive (SO_KEEPALIVE) option", true},
	156:                 {"unable to set socket keepalive TCP period (TCP_KEEPIDLE) option", true},
	157:                 {"unable to set/get socket keepalive TCP retry interval (TCP_KEEPINTVL) option", true},
	158:                 {"unable to set/get socket keepalive TCP number of retries (TCP_KEEPCNT) option", true},
	159:                 {"unable to change mask of blocked signals", false},
	codeDurationExpired: {"server test duration expired", true},
	codeCreateStream:    {"unable to create a new stream", true},
	codeInitStream:      {"unable to initialize stream", true},
	codeStreamListen:    {"unable to start stream listener", true},
	codeStreamConnect:   {"unable to connect stream", true},
	codeStreamAccept:    {"unable to accept stream connection", true},
	codeStreamWrite:     {"unable to write to stream socket", true},
	codeStreamRead:      {"unable to read from stream socket", true},
	codeStreamClose:     {"stream socket has closed unexpectedly", false},
	codeStreamID:        {"stream has an invalid id", false},
	300:                 {"unable to create new timer", true},
	301:                 {"unable to update timer", true},
}

// texts312 are those of 3.12 that differ; a nil entry is a code it does not know.
var texts312 = map[int]*text{
	codeDuration:    {"test duration too long (maximum = 86400 seconds)", false},
	codeMSS:         {"TCP MSS too large (maximum = 9216 bytes)", false},
	codeOmit:        {"bogus value for --omit", false},
	28:              nil,
	codeUDPFile:     nil,
	35:              nil,
	36:              nil,
	codeMaxDuration: nil,
	38:              nil,
	codeConnect:     {"unable to connect to server", true},
	codeMessage:     {"received an unknown control message", false},
	codeSendMessage: {"unable to send control message", true},
	codeRecvMessage: {"unable to receive control message", true},
	codeUserTimeout: {"unable to set TCP/SCTP MSS", true}, // theirs
	150:             nil, 151: nil, 152: nil, 153: nil, 154: nil, 155: nil, 156: nil, 157: nil, 158: nil, 159: nil,
	codeDurationExpired: nil,
}

// Text is what the given release of iperf3 ("3.21", "3.12") prints for a code with a
// Linux errno, without any prefix.
func Text(code, errno int, release string) string {
	t, ok := texts321[code]
	if release == "3.12" {
		if old, changed := texts312[code]; changed {
			ok = old != nil
			if ok {
				t = *old
			}
		}
	}
	if !ok {
		t = text{fmt.Sprintf("int_errno=%d", code), true}
	}
	if !t.system {
		return t.words
	}
	if errno <= 0 {
		return t.words + ": "
	}
	return t.words + ": " + Strerror(errno)
}

// InWords returns e with iperf3's own text, as the given release words it at the given
// end, for an output that must look like iperf3's. An error that iperf3 has no number
// for keeps its text.
func InWords(e *result.Error, end result.End, release string) *result.Error {
	if e == nil || e.Number == 0 {
		return e
	}
	out := *e
	out.Text = Text(e.Number, e.Errno, release)
	if end == result.Server && e.Number == codeCtrlClose {
		out.Text = "the client has unexpectedly closed the connection"
	}
	return &out
}
