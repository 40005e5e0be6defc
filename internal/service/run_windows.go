package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// eventID is the number of all our events: EventCreate.exe, whose message file is used,
// has texts for 1 to 1000 that show the line as it is.
const eventID = 1

// eventJournal writes to the event log Application.
type eventJournal struct{ *eventlog.Log }

// Info implements journal.
func (j eventJournal) Info(text string) error { return j.Log.Info(eventID, text) }

// Warning implements journal.
func (j eventJournal) Warning(text string) error { return j.Log.Warning(eventID, text) }

// handler is the service as the manager sees it.
type handler struct {
	serve func(ctx context.Context, out, errs io.Writer, ready func()) int
	log   journal
	code  int
}

const managed = true

func run(logFile string, serve func(ctx context.Context, out, errs io.Writer, ready func()) int) (int, error) {
	log, err := openJournal(logFile)
	if err != nil {
		return 0, err
	}
	defer log.Close() //nolint:errcheck // what was written was written
	h := &handler{serve: serve, log: log}
	if err := svc.Run(Name, h); errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return 0, fmt.Errorf("service: the service manager did not start this process; use --install-service: %w", err)
	} else if err != nil {
		return 0, fmt.Errorf("service: %w", err)
	}
	return h.code, nil
}

func openJournal(path string) (journal, error) {
	if path == "" {
		l, err := eventlog.Open(Name)
		if err != nil {
			return nil, fmt.Errorf("service: event log: %w", err)
		}
		return eventJournal{l}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return &fileJournal{w: f, now: time.Now}, nil
}

// Execute implements svc.Handler: Running is told when serve is ready, Stopped when it
// has ended.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, code uint32) {
	changes <- svc.Status{State: svc.StartPending, WaitHint: uint32(patience.Milliseconds())}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &lines{line: func(s string) { _ = h.log.Info(s) }}
	errs := &lines{line: func(s string) { _ = h.log.Warning(s) }}
	ready, ended := make(chan struct{}, 1), make(chan int, 1)
	go func() { // ends with serve, which ends with ctx
		ended <- h.serve(ctx, out, errs, func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})
	}()
	for stopping := false; ; {
		select {
		case <-ready:
			if stopping {
				continue
			}
			changes <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
		case h.code = <-ended:
			out.flush()
			errs.flush()
			return h.code != 0, uint32(h.code)
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				changes <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				stopping = true
				changes <- svc.Status{State: svc.StopPending, WaitHint: uint32(patience.Milliseconds())}
				cancel()
			}
		}
	}
}
