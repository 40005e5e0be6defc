package firewall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// This is the machine that this process runs on. program is the whole path of the
// program whose ports are meant.
func This(program string) System {
	return System{Run: execute, Files: os.DirFS("/"), Alive: alive, Privileged: privileged(), Program: program}
}

// execute runs a program of the system. Those that change filters are often outside the
// PATH of users who may not change them, so their usual folders are looked into as well.
func execute(ctx context.Context, args ...string) ([]byte, error) {
	path, err := exec.LookPath(args[0])
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if errors.Is(err, exec.ErrNotFound) && !strings.ContainsAny(args[0], `/\`) {
			path, err = exec.LookPath(filepath.Join(dir, args[0]))
			if errors.Is(err, os.ErrNotExist) {
				err = exec.ErrNotFound
			}
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = exec.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &out, &errs
	apart(cmd)                  // Ctrl-C is for us: what is half done it would break
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(errs.String())
		if text == "" {
			text = strings.TrimSpace(out.String()) // netsh complains there
		}
		if text == "" {
			return out.Bytes(), err
		}
		return out.Bytes(), fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(text), " "))
	}
	return out.Bytes(), nil
}

// slack is how far the start of a process, the time in a rule's name (whole seconds) and
// a clock that was set in between may be apart.
const slack = 5 * time.Second
