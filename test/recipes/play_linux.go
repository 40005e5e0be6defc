package recipes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/ntttcp"
	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/plan"
)

// Tool is a program that plays sides of recipes.
type Tool struct {
	Name    string
	Args    []string // the program and its words in front of a line
	Env     []string
	Dialect plan.NTTTCPDialect // that it speaks unless --dialect says otherwise
	// Original: none of ours. It has one dialect and its own ways: it plays what is marked for
	// originals.
	Original    bool
	NoInterrupt bool // SIGINT does not reach it as Ctrl-C: it can only be the side that is left alone
}

// Plays reports whether the tool can play l.
func (t Tool) Plays(r Recipe, l Line) bool {
	interrupted := r.Interrupt == plan.NTTTCPReceiver && l == r.Receiver || r.Interrupt == plan.NTTTCPSender && l == r.Sender
	return !(t.Original && (!r.Originals || l.Dialect != t.Dialect)) && !(t.NoInterrupt && interrupted)
}

func (t Tool) command(l Line) []string {
	args := append([]string(nil), t.Args...)
	if l.Dialect != t.Dialect {
		args = append(args, "--dialect", string(l.Dialect))
	}
	return append(args, strings.Fields(l.Words)...)
}

// Space is a machine of its own: a network namespace with the recipes' addresses, in which every
// port is free.
type Space struct {
	*lab.Namespace
	network *lab.Network
}

// NewSpace makes one. It needs root.
func NewSpace() (*Space, error) {
	n, err := lab.NewPair("cubic")
	if err != nil {
		return nil, err
	}
	s := &Space{n.Near, n}
	for _, a := range []string{Own, Azure, Blog} {
		err = errors.Join(err, s.AddAddress("lo", a+"/32"))
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return s, nil
}

// Close removes it and whatever still runs there.
func (s *Space) Close() error { return s.network.Close() }

// limit is when a step has hung.
const limit = 90 * time.Second

// side is a side that runs.
type side struct {
	*lab.Process
	end *End
	inv *compat.Invocation
}

func (s *Space) begin(t testing.TB, role plan.NTTTCPRole, tool Tool, l Line) *side {
	t.Helper()
	inv, err := l.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if inv.Plan.NTTTCP.Role != role {
		t.Fatalf("ntttcp %s is no %s", l.Words, role)
	}
	dir := t.TempDir()
	p, err := s.Start(lab.Command{Args: tool.command(l), Env: append([]string{"TZ=UTC", "TERM=dumb"}, tool.Env...), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(os.Kill) // it may have ended long ago
		<-p.Done()
	})
	return &side{p, &End{Role: role, Line: l, Layout: inv.Output.Dialect, Dir: dir}, inv}
}

// over reports that the process has ended.
func (s *side) over() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// until polls a condition of another process.
func (s *side) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if s.over() && !ok() {
			t.Fatalf("%s ended before %s\n%s%s", s.end.Role, what, s.Stdout(), s.Stderr())
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: waited in vain until %s\n%s%s", s.end.Role, what, s.Stdout(), s.Stderr())
		}
	}
}

// ready waits until the receiver has its ports.
func (s *side) ready(t testing.TB, space *Space, original bool) {
	t.Helper()
	if s.end.Layout == plan.NTTTCPLinux {
		s.until(t, "its threads are created", func() bool { return strings.Contains(s.Stdout(), "threads created") })
		return
	}
	last := s.inv.Plan.Port + s.inv.Plan.NTTTCP.Ports - 1
	if !original && !s.inv.Plan.NTTTCP.NoSync { // ours opens these last
		last += plan.NTTTCPTokenOffset
		if n := s.inv.Plan.NTTTCP.LinuxPorts; n > 0 {
			last = plan.NTTTCPPort + n - 1
		}
	}
	s.until(t, fmt.Sprintf("port %d listens", last), func() bool { return space.listens(t, last) })
}

// listens reports whether a TCP port of the space does.
func (s *Space) listens(t testing.TB, port int) (yes bool) {
	t.Helper()
	err := s.Do(func() error {
		for _, table := range []string{"tcp", "tcp6"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + table)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(b)) {
				w := strings.Fields(line)
				if len(w) < 4 || w[3] != "0A" {
					continue
				}
				_, hex, _ := strings.Cut(w[1], ":")
				if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
					yes = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// wait waits for the end of a side.
func (s *side) wait(t testing.TB) *End {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	code, err := s.Wait(ctx)
	s.end.Exit, s.end.Stdout, s.end.Stderr = code, s.Stdout(), s.Stderr()
	if err != nil {
		t.Fatalf("%v\n%v", err, s.end)
	}
	return s.end
}

// Play runs both sides of r, cut to so many seconds, and checks what they leave.
func (r Recipe) Play(t testing.TB, space *Space, receiver, sender Tool, seconds int) (*End, *End) {
	t.Helper()
	rl, sl := r.Receiver, r.Sender
	if r.Interrupt == "" {
		rl, sl = rl.Short(seconds), sl.Short(seconds)
	}
	recv := space.begin(t, plan.NTTTCPReceiver, receiver, rl)
	recv.ready(t, space, receiver.Original)
	send := space.begin(t, plan.NTTTCPSender, sender, sl)
	if r.Interrupt != "" {
		const flows = "Real-time throughput: "
		for _, s := range []*side{send, recv} {
			s.until(t, "payload flows", func() bool { return strings.Contains(s.Stdout(), flows) })
		}
		stopped := send
		if r.Interrupt == plan.NTTTCPReceiver {
			stopped = recv
		}
		if err := stopped.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	se := send.wait(t)
	re := recv.wait(t)
	errs := []error{r.Check(re, se, map[plan.NTTTCPRole]bool{plan.NTTTCPReceiver: receiver.Original, plan.NTTTCPSender: sender.Original})}
	if !receiver.Original {
		errs = append(errs, r.CheckNotes(re))
	}
	if !sender.Original {
		errs = append(errs, r.CheckNotes(se))
	}
	if err := errors.Join(errs...); err != nil {
		t.Errorf("%v\n%v\n%v", err, re, se)
	}
	return re, se
}
