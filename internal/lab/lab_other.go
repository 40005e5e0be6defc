//go:build !linux

package lab

import (
	"context"
	"errors"
	"fmt"
)

var errUnsupported = fmt.Errorf("lab: emulated paths need Linux: %w", errors.ErrUnsupported)

// Check reports whether this process can make namespaces.
func Check() error { return errUnsupported }

func play(context.Context, *Scenario, RunOptions) (Play, error) { return Play{}, errUnsupported }

func busyMain(int) error { return errUnsupported }

func proxyMain(uint16) error { return errUnsupported }

// Shell opens an emulated path; only on Linux.
func Shell(context.Context, ShellOptions, Stdio) error { return errUnsupported }
