//go:build linux

package dropin

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// noTransport is what iperf3 says when a protocol is missing.
const noTransport = "unable to start stream listener: Protocol not supported"

// refused checks a client that could not run its test for want of a transport.
func (c comparison) refused(got outcome, transport string, doc, stream bool) {
	c.Helper()
	exit := 1
	if (doc || stream) && c.release == "3.12" {
		exit = 0
	}
	if got.exit != exit {
		c.Errorf("exit %d, want %d\n%s", got.exit, exit, got)
	}
	said := got.stderr
	switch {
	case stream:
		lines, _, err := readEvents(got.stdout)
		if err != nil || len(lines) != 2 {
			c.Errorf("%v\n%s", err, got)
			return
		}
		o, _ := lines[0].(*cjson.Object)
		if o.Get("event") != "error" {
			c.Errorf("%s", got)
		}
		said, _ = o.Get("data").(string)
	case doc:
		docs, err := readDocuments(got.stdout)
		if err != nil || len(docs) != 1 {
			c.Errorf("%v\n%s", err, got)
			return
		}
		o, _ := docs[0].(*cjson.Object)
		said, _ = o.Get("error").(string)
	case got.stdout != "":
		c.Errorf("stdout: %q", got.stdout)
	}
	if !strings.HasPrefix(strings.TrimPrefix(said, "iperf3: error - "), noTransport) {
		c.Errorf("says %q, want first %q", said, noTransport)
	}
	c.says(said, transport+": this build carries only TCP and UDP")
}

// TestServerRefusesSCTP: a client that asks for it is told the reason, with iperf3's
// code, before any stream; never is TCP run instead.
func TestServerRefusesSCTP(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"3.21", "3.12"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, release)
			server := b.serve(nil, "-s", "-1")
			answer := b.ask(iperf3.ParamsOf(plan.Plan{Transport: plan.SCTP, Host: far4, Duration: time.Second}.Filled(), release))
			// SERVER_ERROR, then code and errno (spec iperf3-protocol §11).
			want := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{0xfe}, 202), 93)
			if string(answer) != string(want) {
				t.Errorf("the server answers % x, want % x", answer, want)
			}
			out := b.wait(server)
			comparison{bench: b, dev: &deviations{all: goldentest.ReadDeviations(t)}, name: "sctp.server"}.text(golden(t, release, "sctp.server.txt"), out.stdout)
			if out.exit != 0 || !strings.HasPrefix(out.stderr, "iperf3: error - "+noTransport+"\n") {
				t.Errorf("server: %s", out)
			}
			b.says(out.stderr, "refused: this server carries no sctp")
		})
	}
}

// scripted is the control connection of a client that this test plays.
type scripted struct {
	net.Conn
	cookie iperf3.Cookie
}

// greet begins a conversation up to the parameters.
func (b *bench) greet(p iperf3.Params) scripted {
	b.Helper()
	c := scripted{b.dial(), iperf3.NewCookie()}
	b.check(c.SetDeadline(time.Now().Add(limit)))
	_, err := c.Write(c.cookie[:])
	b.check(err)
	if got := b.state(c); got != iperf3.StateParamExchange {
		b.Fatalf("the server says %v", got)
	}
	_, err = c.Write(iperf3.AppendDocument(nil, p.Encode()))
	b.check(err)
	return c
}

// state reads one.
func (b *bench) state(c net.Conn) iperf3.State {
	b.Helper()
	var state [1]byte
	_, err := io.ReadFull(c, state[:])
	b.check(err)
	return iperf3.State(state[0])
}

// ask sends parameters to the server and returns all that it says to them.
func (b *bench) ask(p iperf3.Params) []byte {
	b.Helper()
	c := b.greet(p)
	answer, err := io.ReadAll(c)
	b.check(errors.Join(err, c.Close())) // else the server lingers
	return answer
}

// TestServerRefusesRealClient: the real program understands the refusal.
func TestServerRefusesRealClient(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed (test/peers.sh); TestServerRefusesSCTP checks the same on the wire")
	}
	b := newBench(t, "3.12")
	server := b.serve(nil, "-s", "-1")
	got, err := b.net.Near.Run(t.Context(), real, "-c", far4, "--sctp", "-t", "1")
	b.check(err)
	if strings.Contains(got.Stderr, "unrecognized option") || strings.Contains(got.Stderr, "not supported on this host") {
		t.Skip("this iperf3, or this kernel, has no SCTP; TestServerRefusesSCTP checks the same on the wire")
	}
	out := b.wait(server)
	if got.Code != 1 {
		t.Errorf("the client exits %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	b.says(got.Stderr, noTransport)
	if strings.Contains(out.stdout, "connected to") {
		t.Errorf("the server ran a test: %s", out)
	}
}

// TestSCTPOptions: they are read, and a test without SCTP runs and says that they have
// no effect.
func TestSCTPOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	server := b.serve(nil, "-s", "-1")
	got := b.client(nil, "-c", far4, "-n", "1M", "--nstreams", "5", "-X", near4)
	if got.exit != 0 || !strings.Contains(got.stdout, "\niperf Done.\n") {
		t.Errorf("%s", got)
	}
	b.says(got.stderr, "-X is about SCTP: no effect here")
	b.wait(server)
	for _, words := range [][]string{{"--nstreams", "5"}, {"-X", near4}, {}} {
		got := b.client(nil, append([]string{"-c", far4, "--sctp"}, words...)...)
		comparison{bench: b, name: "sctp"}.refused(got, "sctp", false, false)
	}
}
