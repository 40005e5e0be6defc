//go:build linux

package dropin

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// keys is a key pair for the logins; making one takes a while.
var keys = sync.OnceValues(func() (private, public []byte) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
})

// login writes the key files and the users file of the recordings.
func login(b *bench) {
	b.Helper()
	private, public := keys()
	sum := sha256.Sum256([]byte("{mario}rossi"))
	for name, data := range map[string][]byte{
		"priv.pem": private, "pub.pem": public, "users.csv": []byte("mario," + hex.EncodeToString(sum[:]) + "\n"),
	} {
		b.check(os.WriteFile(filepath.Join(b.dir, name), data, 0o600))
	}
}

// alone: a server that nobody comes to, and that ends by itself.
func alone(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	b.compare(dev, r, "server", b.wait(b.start(b.net.Far, nil, r.server.words...)))
}

// portTaken: a server is there already.
func portTaken(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	first := b.serve(nil, "-s")
	b.compare(dev, r, "server", b.wait(b.start(b.net.Far, nil, r.server.words...)))
	if ended(first) {
		t.Errorf("the first server ended: %s", first.Stderr())
	}
}

// pidfileTaken: a server with that pid file is there already, on another port.
func pidfileTaken(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	first := b.serve(nil, "-s", "-p", "5202", "-I", "pid")
	b.until("the pid file is written", func() bool {
		data, err := os.ReadFile(filepath.Join(b.dir, "pid"))
		return err == nil && len(data) > 0
	})
	pid := b.read("pid")
	b.compare(dev, r, "server", b.wait(b.start(b.net.Far, nil, r.server.words...)))
	if got := b.read("pid"); got != pid {
		t.Errorf("pid file was %q, is %q", pid, got)
	}
	b.signal(first, syscall.SIGTERM)
	b.wait(first)
	if _, err := os.Stat(filepath.Join(b.dir, "pid")); !os.IsNotExist(err) {
		t.Errorf("pid file after the end: %v", err)
	}
}

// noServer: a client that fails before it would connect.
func noServer(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	b.files()
	got := b.client(r.client.env, r.client.words...)
	if c := (comparison{bench: b, name: r.name + ".client"}); strings.HasPrefix(c.golden(".txt"), "Usage: ") {
		// 3.12 prints the long help on standard output, and its words are ours.
		first, _, _ := strings.Cut(got.stdout, "\n")
		if !strings.HasPrefix(c.golden(".txt"), first+"\n") || first == "" {
			t.Errorf("stdout begins with %q", first)
		}
		c.dev = dev
		if got.exit != r.client.exit {
			t.Errorf("exit %d", got.exit)
		}
		c.stderr(got.stderr)
		return
	}
	b.compare(dev, r, "client", got)
}

// badLogin: the server stays, as a failed login is not the one test, until it is
// interrupted. 3.21 lost the reason and ended; 3.12 did as we do (spec iperf3-cli §9.4).
func badLogin(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	b.files()
	server := b.serve(nil, r.server.words...)
	client := b.client(r.client.env, r.client.words...)
	b.compare(dev, r, "client", client)
	b.says(client.stdout+client.stderr, "test authorization failed")
	b.until("the server waits again", func() bool {
		return strings.Contains(server.Stdout(), "(test #2)") || strings.Contains(server.Stdout(), "\n}\n")
	})
	b.says(server.Stdout()+server.Stderr(), "error - test authorization failed")
	b.signal(server, os.Interrupt)
	b.compare(dev, r, "server", b.wait(server))
}

// TestBadLoginIsNotTheTest: after it a one-off server serves whoever knows the password.
func TestBadLoginIsNotTheTest(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.files()
	server := b.serve(nil, "-s", "-1", "--rsa-private-key-path", "priv.pem", "--authorized-users-path", "users.csv")
	for _, c := range []struct {
		password string
		exit     int
	}{{"wrong", 1}, {"rossi", 0}} {
		got := b.client([]string{"IPERF3_PASSWORD=" + c.password}, "-c", far4, "-n", "1M", "--username", "mario", "--rsa-public-key-path", "pub.pem")
		if got.exit != c.exit {
			t.Errorf("password %s: %s", c.password, got)
		}
	}
	if out := b.wait(server); out.exit != 0 || strings.Count(out.stdout, "Accepted connection") != 1 {
		t.Errorf("server: %s", out)
	}
}

// busy: a second client while a test runs, which is long enough for one that is late.
func busy(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, "-s", "-1")
	first := b.start(b.net.Near, nil, "-c", far4, "-t", "6", "-b", "20M")
	b.flowed(first, b.net.Near, 500_000)
	b.compare(dev, r, "client", b.client(nil, r.client.words...))
	if got := b.wait(first); got.exit != 0 || got.stderr != "" {
		t.Errorf("the first client: %s", got)
	}
	if r.server != nil {
		b.compare(dev, r, "server", b.wait(server))
	}
}

// neverConnects: what can be seen to fail before anybody is bothered does not reach the
// server, which still takes the next client.
func neverConnects(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, "-s", "-1")
	b.compare(dev, r, "client", b.client(nil, r.client.words...))
	b.stillServes(server)
}

// stillServes checks that a one-off server has not been used up, and says nothing bad.
func (b *bench) stillServes(server *lab.Process) outcome {
	b.Helper()
	if got := b.client(nil, "-c", far4, "-n", "1M"); got.exit != 0 || got.stderr != "" {
		b.Errorf("the next client: %s", got)
	}
	out := b.wait(server)
	if out.exit != 0 || strings.Count(out.stdout, "Accepted connection") != 1 {
		b.Errorf("the server: %s", out)
	}
	return out
}

// garbage: a visitor with another protocol is told on one line, and is not the one test
// of a one-off server.
func garbage(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, r.server.words...)
	c := b.dial()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a-name-long-enough-for-a-cookie\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b.check(c.Close())
	b.until("the server has told it", func() bool { return server.Stderr() != "" })
	out := b.stillServes(server)
	out.stdout, _, _ = strings.Cut(out.stdout, "Accepted connection")
	if n := strings.Count(out.stderr, "\n"); n != 1 || !strings.HasPrefix(out.stderr, "iperf3: ") {
		t.Errorf("%d lines: %q", n, out.stderr)
	}
	b.says(out.stderr, near4, "HTTP")
	b.compare(dev, r, "server", out)
}

// notIperf3: a server with another protocol.
func notIperf3(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	var ln net.Listener
	b.check(b.net.Far.Do(func() (err error) {
		ln, err = net.Listen("tcp4", far4+":5201")
		return err
	}))
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ends with the listener
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP")
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	b.compare(dev, r, "client", b.client(nil, r.client.words...))
}

// moment is when a recorded signal came: 1.6 s at 50 Mbit/s (with UDP at 5), or 2.2 s
// for t0_sigint.
func moment(name string) uint64 {
	switch name {
	case "t0_sigint":
		return 13_700_000
	case "sigint_client_udp":
		return 1_000_000
	}
	return 10_000_000
}

// signalled: an end is ended in mid-test. The case's name says how and which.
func signalled(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	sc := r.serverCommand()
	server := b.serve(nil, sc.words...)
	client := b.start(b.net.Near, nil, r.client.words...)
	sender := b.net.Near
	if r.client.has("-R") {
		sender = b.net.Far
	}
	b.flowed(client, sender, moment(r.name))
	target, sig := client, os.Signal(os.Interrupt)
	if strings.Contains(r.name, "server") && !strings.HasPrefix(r.name, "sigkill_client") {
		target = server
	}
	switch {
	case strings.HasPrefix(r.name, "sigterm"):
		sig = syscall.SIGTERM
	case strings.HasPrefix(r.name, "sigkill"):
		sig = os.Kill
	}
	b.signal(target, sig)
	for _, end := range []struct {
		role string
		p    *lab.Process
	}{{"client", client}, {"server", server}} {
		got := b.wait(end.p)
		if sig == os.Kill && end.p == target || end.role == "server" && r.server == nil {
			continue
		}
		b.compare(dev, r, end.role, got)
	}
}

// idleSignalled: a server that waits.
func idleSignalled(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, r.server.words...)
	sig := os.Signal(os.Interrupt)
	if strings.Contains(r.name, "sigterm") {
		sig = syscall.SIGTERM
	}
	b.signal(server, sig)
	b.compare(dev, r, "server", b.wait(server))
}

// dataStops: a firewall drops the data from 1.7 s at 20 Mbit/s on; the control
// connection stays alive.
func dataStops(t *testing.T, dev *deviations, r *recording) {
	b := ownBench(t, r.release, gigabit)
	server := b.serve(nil, r.server.words...)
	client := b.start(b.net.Near, nil, r.client.words...)
	from, to := b.net.Near, b.net.Far
	if r.client.has("-R") {
		from, to = to, from
	}
	b.flowed(client, from, 4_250_000)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	b.check(to.NFT(ctx, "table inet t { chain c { type filter hook input priority 0; meta length > 200 drop; }; }"))
	b.compare(dev, r, "client", b.wait(client))
	b.compare(dev, r, "server", b.wait(server))
}

// limitInTest: the first report falls together with the limit, so the client may
// print it or not.
func limitInTest(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, r.server.words...)
	got := b.client(nil, r.client.words...)
	var kept strings.Builder
	for line := range strings.Lines(got.stdout) {
		if !strings.HasPrefix(line, "[ ID]") && reportRE.FindString(strings.TrimSuffix(line, "\n")) == "" {
			kept.WriteString(line)
		}
	}
	got.stdout = kept.String()
	b.compare(dev, r, "client", got)
	b.compare(dev, r, "server", b.wait(server))
}
