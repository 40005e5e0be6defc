//go:build unix

package interop

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/result"
)

// login makes a key pair and a users file for user "u" with password "pw".
func login(t *testing.T) (privateFile, publicFile, usersFile string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	return write("private.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		write("public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})),
		write("users.csv", fmt.Appendf(nil, "u,%x\n", sha256.Sum256([]byte("{u}pw"))))
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRealLogin: both roles, good and bad. Debian's 3.12 speaks the old padding only.
func TestRealLogin(t *testing.T) {
	iperf3Path(t)
	priv, pub, users := login(t)
	t.Run("client", func(t *testing.T) {
		srv := startServer(t, plan.Serve{PrivateKey: readFile(t, priv), UsersFile: users, PKCS1: true}, nil)
		for pw, want := range map[string]int{"pw": 0, "wrong": 1} {
			t.Setenv("IPERF3_PASSWORD", pw)
			code, _, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-t", "1", "-b", "10M", "--username", "u", "--rsa-public-key-path", pub)
			if code != want || (want == 1) != strings.Contains(string(stderr), "test authorization failed") {
				t.Errorf("password %q: exit %d, %s", pw, code, stderr)
			}
		}
		code, _, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-t", "1")
		if code != 1 || !strings.Contains(string(stderr), "test authorization failed") {
			t.Errorf("no login: exit %d, %s", code, stderr)
		}
	})
	t.Run("server", func(t *testing.T) {
		port, wait := realServer(t, "--rsa-private-key-path", priv, "--authorized-users-path", users)
		for _, tc := range []struct {
			auth *plan.Auth
			code string
		}{
			{nil, "auth"},
			{&plan.Auth{Username: "u", Password: "wrong", PublicKey: readFile(t, pub), PKCS1: true}, "auth"},
			{&plan.Auth{Username: "u", Password: "pw", PublicKey: readFile(t, pub)}, "auth"}, // the new padding
			{&plan.Auth{Username: "u", Password: "pw", PublicKey: readFile(t, pub), PKCS1: true}, ""},
		} {
			// A server opens its listener anew after each failure: wait for it, as people do.
			// Who connects in that moment is refused, or let in and dropped without a word.
			var err error
			for range 200 {
				c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: port, Bytes: 1 << 20, Auth: tc.auth}}
				err = c.Run(t.Context(), &events{})
				var e *result.Error
				if !errors.As(err, &e) || e.Code != "connect" && e.Code != "peer-closed" && e.Code != "closed" {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			var e *result.Error
			if tc.code == "" && err != nil || tc.code != "" && (!errors.As(err, &e) || e.Code != tc.code) {
				t.Errorf("%+v: %v", tc.auth, err)
			}
		}
		if code, out := wait(); code != 0 {
			t.Errorf("server: exit %d\n%s", code, out)
		}
	})
}

// TestRealServerOutput: --get-server-output in both roles and both forms.
func TestRealServerOutput(t *testing.T) {
	iperf3Path(t)
	t.Run("client", func(t *testing.T) {
		for _, asJSON := range []bool{false, true} {
			srv := startServer(t, plan.Serve{JSONOutput: asJSON}, func(r *result.Run) (string, []byte) {
				if asJSON {
					b, err := json.Marshal(map[string]any{"end": map[string]any{"bytes": r.Streams[0].Receiver.Bytes}})
					if err != nil {
						t.Error(err)
					}
					return "", b
				}
				return "Accepted connection\n\"" + strings.Repeat("x", 100000) + "\"\n", nil
			})
			code, stdout, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-t", "1", "-b", "10M", "-J", "--get-server-output")
			var doc document
			if err := json.Unmarshal(stdout, &doc); err != nil || code != 0 {
				t.Fatalf("exit %d, %v\n%s", code, err, stderr)
			}
			if asJSON && !bytes.Contains(doc.ServerJSON, []byte(`"bytes"`)) || !asJSON && (doc.ServerText == nil || len(*doc.ServerText) != 100023) {
				t.Errorf("json %v: %s", asJSON, doc.ServerJSON)
			}
		}
	})
	t.Run("server", func(t *testing.T) {
		for _, args := range [][]string{nil, {"-J"}} {
			port, wait := realServer(t, args...)
			ev := &events{}
			c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: port, Duration: time.Second, Bitrate: 10e6, GetServerOutput: true}}
			if err := c.Run(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
			w := ev.run().Wire
			if args == nil && (w.ServerText == nil || !strings.Contains(*w.ServerText, "Accepted connection from 127.0.0.1")) {
				t.Errorf("text %v", w.ServerText)
			}
			if args != nil && !bytes.Contains(w.ServerJSON, []byte(`"sum_received"`)) {
				t.Errorf("json %s", w.ServerJSON)
			}
			wait()
		}
	})
}

// TestRealMany: forty real clients at once against one of our servers; all end well and
// both ends agree on every sum.
func TestRealMany(t *testing.T) {
	iperf3Path(t)
	srv := startServer(t, plan.Serve{}, nil)
	sent := make([]int64, 40)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			args := []string{"-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-J", "-t", "2", "-b", "5M", "-T", "n" + strconv.Itoa(i)}
			if i%2 == 1 {
				args = append(args, "-R")
			}
			code, stdout, stderr := real(t, args...)
			var doc document
			if err := json.Unmarshal(stdout, &doc); err != nil || code != 0 || doc.Error != "" {
				t.Errorf("client %d: exit %d, %v %s %s", i, code, err, doc.Error, stderr)
				return
			}
			sent[i] = doc.End.Streams[0].Sender.Bytes
		}()
	}
	wg.Wait()
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if len(srv.runs) != 40 {
		t.Fatalf("the server saw %d tests", len(srv.runs))
	}
	for _, e := range srv.runs {
		run := e.run()
		i, err := strconv.Atoi(strings.TrimPrefix(run.Test.Title, "n"))
		if err != nil || run.Err != nil {
			t.Errorf("%q: %v %v", run.Test.Title, err, run.Err)
			continue
		}
		if got := run.Streams[0].Sender.Bytes; got != sent[i] || got == 0 {
			t.Errorf("client %d sent %d, the server says %d", i, sent[i], got)
		}
	}
}

// TestRealBackToBack: real clients that follow each other without a pause (field case F32).
func TestRealBackToBack(t *testing.T) {
	iperf3Path(t)
	srv := startServer(t, plan.Serve{Exclusive: true}, nil)
	for i := range 200 {
		if code, _, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-n", "1K", "-l", "1K"); code != 0 {
			t.Fatalf("client %d: exit %d, %s", i, code, stderr)
		}
	}
}

// TestRealFile: -F with a real program at the other end.
func TestRealFile(t *testing.T) {
	iperf3Path(t)
	dir := t.TempDir()
	data := make([]byte, 1000003)
	_, _ = rand.Read(data)
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	srv := startServer(t, plan.Serve{File: out}, nil)
	if code, _, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-F", in); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	if got := readFile(t, out); !bytes.Equal(got, data) {
		t.Errorf("from a real client: %d bytes", len(got))
	}
	if run := srv.run(0); run.Streams[0].Receiver.Bytes != int64(len(data)) {
		t.Errorf("%+v", run.Streams[0].Receiver)
	}
	out = filepath.Join(dir, "out2")
	port, wait := realServer(t, "-F", out)
	c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: port, File: in}}
	if err := c.Run(t.Context(), &events{}); err != nil {
		t.Fatal(err)
	}
	wait()
	if got := readFile(t, out); !bytes.Equal(got, data) {
		t.Errorf("to a real server: %d bytes", len(got))
	}
}

// TestRealDies: a real program is killed or frozen in mid-test; ours says so, keeps what
// was measured, and its server is free.
func TestRealDies(t *testing.T) {
	path := iperf3Path(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGINT} {
		for _, reverse := range []bool{false, true} {
			name := fmt.Sprintf("%v reverse=%v", sig, reverse)
			t.Run("server "+name, func(t *testing.T) {
				t.Parallel()
				prog := spawn(t, path, "-s", "-1")
				p := plan.Plan{Host: "127.0.0.1", Port: prog.port, Duration: 2 * time.Second, Bitrate: 20e6, ReceiveTimeout: time.Second}
				if reverse {
					p.Direction = plan.Down
				}
				ev := &hooked{on: func(e result.Event) {
					if e.Kind == result.KindInterval {
						_ = prog.cmd.Process.Signal(sig)
					}
				}}
				p.Interval = 300 * time.Millisecond
				c := &iperf3.Client{Plan: p, Timeouts: iperf3.Timeouts{Answer: time.Second}}
				err := c.Run(t.Context(), ev)
				run := ev.run()
				var e *result.Error
				if !errors.As(err, &e) || e.Code == "failed" || !run.Finished() || len(run.Rows) == 0 {
					t.Errorf("%+v, finished %v, %d rows", e, run.Finished(), len(run.Rows))
				} else {
					t.Logf("%s: %s", e.Code, e.Text)
				}
			})
			t.Run("client "+name, func(t *testing.T) {
				t.Parallel()
				srv := startServer(t, plan.Serve{Exclusive: true, ReceiveTimeout: time.Second, Interval: 300 * time.Millisecond}, nil)
				args := []string{"-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-t", "60", "-b", "20M"}
				if reverse {
					args = append(args, "-R")
				}
				ctx, cancel := context.WithCancel(t.Context())
				cmd := exec.CommandContext(ctx, path, args...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() { _ = cmd.Wait(); close(ended) }()
				defer func() { cancel(); <-ended }()
				var run *result.Run
				deadline := time.Now().Add(30 * time.Second)
				for signalled := false; run == nil || run.Err == nil; time.Sleep(10 * time.Millisecond) {
					if run = srv.run(0); run != nil && len(run.Rows) > 0 && !signalled {
						signalled = true
						_ = cmd.Process.Signal(sig)
					}
					if time.Now().After(deadline) {
						t.Fatal("the server did not notice")
					}
				}
				if !run.Finished() || run.Err.Code == "failed" {
					t.Errorf("%+v, finished %v", run.Err, run.Finished())
				}
				t.Logf("%s: %s", run.Err.Code, run.Err.Text)
				if code, _, stderr := real(t, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-n", "1M"); code != 0 {
					t.Errorf("the next client: exit %d, %s", code, stderr)
				}
			})
		}
	}
}

// hooked is events with a look at each.
type hooked struct {
	events
	on func(result.Event)
}

func (h *hooked) Event(e result.Event) {
	h.events.Event(e)
	h.on(e)
}

// TestRealIperf2: iperf 2 at the other end is named, and does no harm.
func TestRealIperf2(t *testing.T) {
	path, err := exec.LookPath("iperf")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("iperf is not installed, and CI must have it (test/peers.sh)")
		}
		t.Skip("iperf (2) is not installed: nothing real to talk to (test/peers.sh installs it)")
	}
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		prog := spawn(t, path, "-s")
		c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: prog.port, Bytes: 1000}}
		err := c.Run(t.Context(), &events{})
		var e *result.Error
		if !errors.As(err, &e) || e.Code != "not-iperf3" || !strings.Contains(e.Text, "iperf 2 server") {
			t.Errorf("%v", err)
		}
	})
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		srv := startServer(t, plan.Serve{OneOff: true}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_ = exec.CommandContext(ctx, path, "-c", "127.0.0.1", "-p", strconv.Itoa(int(srv.addr.Port())), "-t", "1").Run()
		if ctx.Err() != nil {
			t.Error("iperf 2 hangs")
		}
		c := &iperf3.Client{Plan: plan.Plan{Host: "127.0.0.1", Port: int(srv.addr.Port()), Bytes: 1000}}
		if err := c.Run(t.Context(), &events{}); err != nil {
			t.Errorf("the one test is used up: %v", err)
		}
	})
}
