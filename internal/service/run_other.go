//go:build !windows

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const managed = false

func run(string, func(ctx context.Context, out, errs io.Writer, ready func()) int) (int, error) {
	return 0, fmt.Errorf("service: only Windows starts services this way: %w", errors.ErrUnsupported)
}

// This is the service manager of this machine.
func This() Manager {
	return Manager{Privileged: os.Geteuid() == 0, Run: func(ctx context.Context, args ...string) error {
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
		if text := strings.TrimSpace(string(out)); err != nil && text != "" {
			return fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(text), " "))
		}
		return err
	}}
}
