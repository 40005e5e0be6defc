package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/result"
)

// selfServer is a server process of our own on loopback: the host "self".
type selfServer struct {
	host  string
	port  int
	cmd   *exec.Cmd
	stdin io.Closer
}

// readyPrefix begins the line by which `serve` says that it listens.
const readyPrefix = "listening on "

// startSelf starts `fullbore serve` on a free loopback port. The server ends when
// its standard input closes, so it cannot outlive this process.
func (e *env) startSelf(ctx context.Context) (*selfServer, error) {
	fail := func(err error) (*selfServer, error) {
		return nil, &result.Error{Code: "connect", Text: fmt.Sprintf("self: cannot start a server on this machine: %v", err)}
	}
	exe, err := e.Executable()
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command(exe, "serve", "--listen", "127.0.0.1:0", "--until-stdin-closes", "--no-ntttcp", "--quiet")
	cmd.Stderr = e.Err
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	s := &selfServer{cmd: cmd, stdin: stdin}
	ready := make(chan error, 1)
	go func() { // ends with the server's output
		in := bufio.NewReader(stdout)
		line, err := in.ReadString('\n')
		if err == nil {
			err = s.parse(line)
		}
		ready <- err
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case err = <-ready:
	case <-time.After(10 * time.Second):
		err = fmt.Errorf("it did not answer within 10 s")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.stop()
		return fail(err)
	}
	return s, nil
}

func (s *selfServer) parse(line string) error {
	_, addr, ok := strings.Cut(line, readyPrefix)
	if !ok {
		return fmt.Errorf("unexpected words: %q", strings.TrimSpace(line))
	}
	addr, _, _ = strings.Cut(strings.TrimSpace(addr), " ")
	ap, err := netip.ParseAddrPort(strings.TrimSuffix(addr, ","))
	if err != nil {
		return err
	}
	s.host, s.port = ap.Addr().String(), int(ap.Port())
	return nil
}

// stop ends the server and waits for it.
func (s *selfServer) stop() {
	_ = s.stdin.Close()
	done := make(chan struct{})
	go func() { // ends when the process does; Kill makes sure of it
		_ = s.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
	}
}
