// Package script runs whole command lines: each file of testdata is one story about
// one command. `fullbore` and `iperf3` (ours) are the binary under test, run inside
// the test process; $PORT, $PORT2 … are free ports. $NT is a base port for ntttcp with
// which all its ports are free, $NTSYNC the one below it.
package script

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fullbore-net/fullbore/internal/cli"
)

// realIperf3 is the original, looked up before our own of that name enters PATH.
var realIperf3 string

func TestMain(m *testing.M) {
	realIperf3, _ = exec.LookPath("iperf3") // "" = not installed
	testscript.Main(m, map[string]func(){
		"fullbore": func() { os.Exit(cli.Main(context.Background(), os.Args, cli.OS())) },
		"iperf3":   func() { os.Exit(cli.Main(context.Background(), os.Args, cli.OS())) },
		"ntttcp":   func() { os.Exit(cli.Main(context.Background(), os.Args, cli.OS())) },
		"ntttcps":  func() { os.Exit(cli.Main(context.Background(), os.Args, cli.OS())) },
		"ntttcpr":  func() { os.Exit(cli.Main(context.Background(), os.Args, cli.OS())) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for i, name := range []string{"PORT", "PORT2", "PORT3"} {
				port, err := freePort(i)
				if err != nil {
					return err
				}
				env.Setenv(name, strconv.Itoa(port))
			}
			base, err := ntttcpPorts()
			if err != nil {
				return err
			}
			env.Setenv("NT", strconv.Itoa(base))
			env.Setenv("NTSYNC", strconv.Itoa(base-1))
			env.Setenv("TZ", "UTC")
			env.Setenv("FULLBORE_HISTORY", filepath.Join(env.WorkDir, ".state", "history.db"))
			env.Setenv("REAL_IPERF3", realIperf3)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"waitport": waitPort,
			"exit":     exitCode,
			"schema":   validate,
			"anyhow":   anyhow,
			"waitfor":  waitFor,
			"agree":    agree,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "real-iperf3":
				if realIperf3 == "" && os.Getenv("CI") != "" {
					return false, fmt.Errorf("CI needs iperf3")
				}
				return realIperf3 != "", nil
			case "capture":
				_, err := exec.LookPath("dumpcap")
				if ready := err == nil && os.Getuid() == 0; ready || os.Getenv("CI") == "" {
					return ready, nil
				}
				return false, fmt.Errorf("CI needs dumpcap (of Wireshark) and root: %v", err)
			case "root":
				root := os.Getuid() == 0
				if !root && os.Getenv("CI") != "" {
					return false, fmt.Errorf("CI runs as root")
				}
				return root, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// freePort returns a port that nobody listens on, outside the ephemeral range so that
// no outgoing connection takes it in the meantime.
func freePort(i int) (int, error) {
	for n := range 200 {
		port := 20000 + (os.Getpid()*31+i*97+n*211+int(time.Now().UnixNano()/1000)%5000)%10000
		ln, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		return port, ln.Close()
	}
	return 0, fmt.Errorf("no free port")
}

// waitPort waits until something listens on the port (without connecting: a
// connection would be a visitor to the server). usage: waitport PORT
func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitport PORT")
	}
	port, err := strconv.Atoi(args[0])
	ts.Check(err)
	for range 1500 {
		if listening(port) {
			return
		}
		time.Sleep(10 * time.Millisecond) // polls a condition of another process
	}
	ts.Fatalf("nobody listens on port %d", port)
}

// exitCode runs a command and compares its exit status. usage: exit CODE[|CODE…] PROGRAM ARG…
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARG…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		ee, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		got = ee.ExitCode()
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("%v: exit status %d, want %s", args[1:], got, args[0])
	}
}

// anyhow runs a program whose exit code hangs on what a busy machine lets it reach: what it
// prints is looked at, not whether it passed.
func anyhow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: anyhow program [word…]")
	}
	_ = ts.Exec(args[0], args[1:]...) // its output is kept for stdout and stderr
}
