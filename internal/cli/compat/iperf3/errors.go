package iperf3

import (
	"errors"
	"fmt"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The parameter errors of 3.21, byte for byte (src/iperf_error.c): scripts look for
// them. Those that end in ": " do so because iperf3 appends the text of errno there
// and has none at that point.
const (
	textBothRoles     = "cannot be both server and client"
	textNoRole        = "must either be a client (-c) or server (-s)"
	textServerOnly    = "some option you are trying to set is server only"
	textClientOnly    = "some option you are trying to set is client only"
	textDuration      = "test duration valid values are 0 to 86400 seconds"
	textStreams       = "number of parallel streams too large (maximum = 128)"
	textBlock         = "block size too large (maximum = 1048576 bytes)"
	textUDPBlock      = "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"
	textWindow        = "socket buffer size too large (maximum = 536870912 bytes)"
	textInterval      = "invalid report interval (min = 0.1, max = 60 seconds)"
	textTOS           = "bad TOS value (must be between 0 and 255 inclusive)"
	textClientAuth    = "you must specify a username, password, and path to a valid RSA public key"
	textServerAuth    = "you must specify a path to a valid RSA private key and a user credential file"
	textUsersFile     = "cannot access authorized users file"
	textFormat        = "bad format specifier (valid formats are in the set [kmgtKMGT])"
	textPort          = "port number must be between 1 and 65535 inclusive"
	textMSS           = "TCP MSS too large (maximum = 32767 bytes)"
	textOmit          = "bogus value for --omit (maximum = 600 seconds)"
	textBurst         = "invalid burst count (maximum = 1000)"
	textEnds          = "only one test end condition (-t, -n, -k) may be specified"
	textFlowLabel     = "unable to set IPv6 flow label"
	textAffinity      = "unable to set CPU affinity: "
	textRcvTimeout    = "receive timeout value is incorrect or not in range: "
	textSndTimeout    = "send timeout value is incorrect or not in range: "
	textRcvSender     = "client receive timeout is valid only in receiving mode: "
	textUDPFile       = "cannot transfer file using UDP"
	textUnit          = "invalid unit value or suffix: '%s'"
	textReverseBidir  = "cannot be both reverse and bidirectional"
	textLimitInterval = "invalid time interval for calculating average data rate"
	textSkew          = "skew threshold must be a positive number"
	textIdle          = "idle timeout parameter is not positive or larger than allowed limit"
	textKeepalive     = "control connection Keepalive period should be larger than the full retry period (interval * count): "
)

// Texts of our own, for values that iperf3 takes without a word.
const (
	textStreamsInvalid   = "number of parallel streams invalid (minimum = 1, maximum = 128)"
	textBlockInvalid     = "block size invalid (minimum = 1 bytes, maximum = 1048576 bytes)"
	textWindowInvalid    = "socket buffer size invalid (maximum = 536870912 bytes)"
	textMSSInvalid       = "TCP MSS invalid (minimum = 88 bytes, maximum = %d bytes)"
	textKeepaliveInvalid = "control connection Keepalive values invalid (idle/interval/count: seconds, seconds, number)"
	textDebugInvalid     = "debug level invalid (1 to 4)"
)

// texts312 is where 3.12 words it differently.
var texts312 = map[string]string{
	textDuration:      "test duration too long (maximum = 86400 seconds)",
	textMSS:           "TCP MSS too large (maximum = 9216 bytes)",
	textOmit:          "bogus value for --omit",
	textLimitInterval: "int_errno=28: ", // 3.12 has no text for it
}

// fault is a parameter error: iperf3's text, and a line of ours where that text says
// neither which option nor what would be right.
type fault struct {
	text string
	hint string
}

// bad names option and value and says why it cannot be used.
func (p *parser) bad(text string, m getopt.Match, why string) *fault {
	return &fault{p.release.text(text), fmt.Sprintf("%s '%s': %s", m.Spelling, m.Value, why)}
}

// plain is a fault whose text says it all.
func (p *parser) plain(text string) *fault { return &fault{text: p.release.text(text)} }

// malformed is a value that cannot be read.
func (p *parser) malformed(text string, m getopt.Match, err error) *fault {
	why := err.Error()
	var syntax *units.SyntaxError
	if errors.As(err, &syntax) {
		why = syntax.Why
	}
	return p.bad(text, m, why)
}

// unit is the fault of an option that takes K, M, G, T.
func (p *parser) unit(m getopt.Match, err error) *fault {
	return p.malformed(fmt.Sprintf(textUnit, m.Value), m, err)
}
