package lab_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/lab/forward"
)

// TestMain lets the test binary be the fullbore of the tests: it knows the hidden
// command of the link process, and programs that stand in for servers and clients.
func TestMain(m *testing.M) {
	var err error
	switch args := os.Args[1:]; {
	case len(args) > 1 && args[0] == "lab":
		if ok, helperErr := lab.Helper(args[1:], os.Stdin, os.Stdout); !ok {
			err = fmt.Errorf("no helper: %q", args)
		} else {
			err = helperErr
		}
	case len(args) == 1 && args[0] == "victim":
		err = victim()
	case len(args) == 1 && args[0] == "sink":
		err = sink()
	case len(args) == 3 && args[0] == "source":
		err = source(args[1], args[2])
	case len(args) == 2 && args[0] == "catch":
		err = catch(args[1])
	case len(args) == 5 && args[0] == "spray":
		err = spray(args[1], args[2], args[3], args[4])
	case len(args) == 2 && args[0] == "deaf":
		err = deaf(args[1])
	case len(args) == 2 && args[0] == "busywatch":
		err = busywatch(args[1])
	case len(args) == 1 && args[0] == "tick":
		err = tick()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// victim makes a lab with a program in it, says so, and waits to be killed.
func victim() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	n, err := lab.NewLink(lab.LinkOptions{Config: forward.Config{MTU: 1500}, CC: "cubic", Command: lab.LinkCommand(exe)})
	if err != nil {
		return err
	}
	p, err := n.Far.Start(lab.Command{Args: []string{"sleep", "600"}})
	if err != nil {
		return err
	}
	fmt.Println(p.Pid(), n.Near.Name, n.Far.Name)
	select {}
}

func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // a clock that every Linux has
	}
	return time.Duration(ts.Nano())
}

// received is what a sink says about one connection: how much it got from start to end,
// seconds after zero on CLOCK_MONOTONIC.
type received struct {
	Bytes int64   `json:"bytes"`
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
	Zero  int64   `json:"zero_mono_ns"`
}

// sink takes one connection on port 5201, reads it to its end and reports.
func sink() error {
	ln, err := net.Listen("tcp", ":5201")
	if err != nil {
		return err
	}
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	zero := monotonic()
	n, err := io.Copy(io.Discard, c)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(received{n, 0, (monotonic() - zero).Seconds(), int64(zero)})
}

// source sends for a while and reports how much.
func source(address, duration string) error {
	d, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", net.JoinHostPort(address, "5201"))
	if err != nil {
		return err
	}
	buf, sent := make([]byte, 128<<10), int64(0)
	for end := time.Now().Add(d); time.Now().Before(end); {
		n, err := c.Write(buf)
		sent += int64(n)
		if err != nil {
			return err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, c); err != nil { // until the sink has all of it
		return err
	}
	fmt.Fprintln(os.Stderr, "source done")
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent})
}
