//go:build !linux && !windows && !darwin

package service

import (
	"context"
	"errors"
	"fmt"
)

var errNone = fmt.Errorf("service: no service manager of this system is known: run fullbore serve under daemon(8), with -r to have it started again: %w", errors.ErrUnsupported)

func text(Spec) (file, contents string, steps []string, err error) { return "", "", nil, errNone }

func (m Manager) install(context.Context, Spec) ([]string, error) { return nil, errNone }

func (m Manager) uninstall(context.Context) ([]string, error) { return nil, errNone }
