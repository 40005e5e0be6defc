package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Shell opens an emulated path with a server at its far end and a shell at its near
// one, and returns when the shell has ended and everything is removed. The shell's
// exit code is the user's business. While it runs, interrupts are the shell's; SIGTERM
// and SIGHUP end it.
func Shell(ctx context.Context, o ShellOptions, std Stdio) (err error) {
	o = o.filled()
	cfg, err := o.config()
	if err != nil {
		return err
	}
	// From here on an interrupt must not leave namespaces behind. Notify, unlike Ignore,
	// is not inherited by the shell.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	n, err := NewLink(LinkOptions{Config: cfg, CC: o.CC, Command: LinkCommand(o.Fullbore)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	log, err := os.CreateTemp("", "fullbore-lab-server-*.log")
	if err != nil {
		return fmt.Errorf("lab: server's log: %w", err)
	}
	defer os.Remove(log.Name())
	defer log.Close()
	if _, err := n.Far.serve(ctx, Command{Args: o.Server, Stdout: log, Stderr: log}); err != nil {
		if text, readErr := os.ReadFile(log.Name()); readErr == nil && len(text) > 0 {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	if _, err := fmt.Fprint(std.Out, o.banner(n.Near.Name, n.Far.Name)); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := o.runShell(ctx, n, std, log.Name(), signals); err != nil {
		return err
	}
	rep, err := n.Link.Report()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(std.Out, farewell(rep)); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

func (o ShellOptions) runShell(ctx context.Context, n *Network, std Stdio, log string, signals <-chan os.Signal) error {
	p, err := n.Near.Start(Command{
		Args: []string{o.Program},
		Env: []string{
			"SERVER=" + FarIPv4, "SERVER6=" + FarIPv6, "SERVER_LOG=" + log,
			"PATH=" + filepath.Dir(o.Fullbore) + string(os.PathListSeparator) + os.Getenv("PATH"),
		},
		Stdin: std.In, Stdout: std.Out, Stderr: std.Err, Foreground: true,
	})
	if err != nil {
		return err
	}
	for {
		select {
		case <-p.Done():
			_, err := p.code()
			return err
		case <-ctx.Done():
			return context.Cause(ctx) // the network's Close ends the shell
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGHUP {
				// A shell ignores SIGTERM but not the loss of its terminal.
				_ = p.Signal(syscall.SIGHUP)
			}
		}
	}
}
