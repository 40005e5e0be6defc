package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"
)

// account has no password, no administrator's rights, and is nobody on the network.
const account = `NT AUTHORITY\LocalService`

// patience is how long starting and stopping may take.
const patience = 30 * time.Second

// This is the service manager of this machine.
func This() Manager { return Manager{Privileged: windows.GetCurrentProcessToken().IsElevated()} }

func text(s Spec) (file, contents string, steps []string, err error) {
	return "", "", []string{
		fmt.Sprintf(`sc.exe create %s binPath= %s start= delayed-auto obj= "%s"`, Name, syscall.EscapeArg(commandLine(s)), account),
		"sc.exe start " + Name,
		"sc.exe stop " + Name + " & sc.exe delete " + Name + "   (to remove it)",
	}, nil
}

func commandLine(s Spec) string {
	words := []string{syscall.EscapeArg(s.Program)}
	for _, w := range s.Words() {
		words = append(words, syscall.EscapeArg(w))
	}
	return strings.Join(words, " ")
}

// connect opens the service control manager.
func connect() (*mgr.Mgr, error) {
	m, err := mgr.Connect()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return nil, fmt.Errorf("service: installing and removing needs a console that was started as administrator: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return m, nil
}

func (m Manager) install(ctx context.Context, s Spec) ([]string, error) {
	if users := filepath.Dir(homeOf()); users != "." && strings.HasPrefix(strings.ToLower(s.Program), strings.ToLower(users)+`\`) {
		return nil, &LocationError{s.Program, users, `C:\Program Files\fullbore`}
	}
	manager, err := connect()
	if err != nil {
		return nil, err
	}
	defer manager.Disconnect() //nolint:errcheck // nothing depends on it
	var done []string
	service, err := manager.OpenService(Name)
	if err == nil {
		if err = stop(ctx, service); err == nil {
			err = setCommandLine(service, commandLine(s))
		}
		done = append(done, "service "+Name+" has the new command line")
	} else {
		service, err = manager.CreateService(Name, s.Program, mgr.Config{
			StartType: mgr.StartAutomatic, ErrorControl: mgr.ErrorNormal,
			ServiceStartName: account, DisplayName: s.Description, Description: s.Description,
		}, s.Words()...)
		done = append(done, "service "+Name+" was created; it starts with the machine, as "+account)
	}
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	defer service.Close() //nolint:errcheck // nothing depends on it
	again := []mgr.RecoveryAction{{Type: mgr.ServiceRestart, Delay: 5 * time.Second}, {Type: mgr.ServiceRestart, Delay: time.Minute}}
	if err := errors.Join(service.SetRecoveryActions(again, 24*60*60), service.SetRecoveryActionsOnNonCrashFailures(true)); err != nil {
		done = append(done, fmt.Sprintf("it is not started again when it fails: %v", err))
	}
	if err := delay(service); err != nil {
		done = append(done, fmt.Sprintf("it starts early, with the system's own services: %v", err))
	}
	if err := eventlog.InstallAsEventCreate(Name, eventlog.Info|eventlog.Warning|eventlog.Error); err != nil && !strings.Contains(err.Error(), "already exists") {
		done = append(done, fmt.Sprintf("its lines in the event log will not be readable: %v", err))
	}
	if err := start(ctx, service); err != nil {
		return done, fmt.Errorf("service: start: %w", err)
	}
	if err := await(ctx, service, svc.Running); err != nil {
		return done, err
	}
	log := "the event log Application, source " + Name
	if s.Log != "" {
		log = s.Log
	}
	return append(done, "it runs; its lines are in "+log), nil
}

// setCommandLine changes only that of a service.
func setCommandLine(service *mgr.Service, line string) error {
	path, err := windows.UTF16PtrFromString(line)
	if err != nil {
		return err
	}
	return windows.ChangeServiceConfig(service.Handle, windows.SERVICE_NO_CHANGE, windows.SERVICE_NO_CHANGE, windows.SERVICE_NO_CHANGE, path, nil, nil, nil, nil, nil, nil)
}

// delay lets the system's own services start first.
func delay(service *mgr.Service) error {
	d := windows.SERVICE_DELAYED_AUTO_START_INFO{IsDelayedAutoStartUp: 1}
	return windows.ChangeServiceConfig2(service.Handle, windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, (*byte)(unsafe.Pointer(&d)))
}

func homeOf() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

func (m Manager) uninstall(ctx context.Context) ([]string, error) {
	manager, err := connect()
	if err != nil {
		return nil, err
	}
	defer manager.Disconnect() //nolint:errcheck // nothing depends on it
	service, err := manager.OpenService(Name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return []string{"there is no service " + Name + ": nothing to remove"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	defer service.Close() //nolint:errcheck // nothing depends on it
	if err := stop(ctx, service); err != nil {
		return nil, err
	}
	if err := service.Delete(); err != nil {
		return []string{"stopped it"}, fmt.Errorf("service: delete: %w", err)
	}
	_ = eventlog.Remove(Name) // what was not registered need not go
	return []string{"stopped it", "removed the service " + Name}, nil
}

// start starts a service. While the system starts another one its database is locked, so it is tried again
// for a while.
func start(ctx context.Context, service *mgr.Service) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := service.Start()
		if !errors.Is(err, windows.ERROR_SERVICE_DATABASE_LOCKED) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop stops a service and waits until it has.
func stop(ctx context.Context, service *mgr.Service) error {
	_, err := service.Control(svc.Stop)
	if errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("service: stop: %w", err)
	}
	return await(ctx, service, svc.Stopped)
}

// await polls for a state; that the service has stopped instead is an error.
func await(ctx context.Context, service *mgr.Service, want svc.State) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, err := service.Query()
		if err != nil {
			return fmt.Errorf("service: query: %w", err)
		}
		switch {
		case status.State == want:
			return nil
		case status.State == svc.Stopped && status.Win32ExitCode == uint32(windows.ERROR_SERVICE_SPECIFIC_ERROR):
			return fmt.Errorf("service: it ended with exit code %d; the event log Application says why", status.ServiceSpecificExitCode)
		case status.State == svc.Stopped:
			return fmt.Errorf("service: it ended: %w", windows.Errno(status.Win32ExitCode))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service: waiting for it: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
