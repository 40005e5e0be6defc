package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/firewall"
	"github.com/fullbore-net/fullbore/internal/service"
)

// serviceOptions are serve's words about being a service.
type serviceOptions struct {
	install   string // "", installNow, installPrint
	uninstall bool
	log       string
	managed   bool // the manager started this process
}

const (
	installNow   = "now"
	installPrint = "print"
)

// Words of serve that only install, that belong to the service alone, or that make no
// sense in one. What they are about is said in the error.
var notInService = map[string]string{
	"one-off":            "a service goes on",
	"idle-timeout":       "a service goes on",
	"until-stdin-closes": "a service has no standard input",
	"open-firewall":      "the ports of a service stay open: fullbore firewall add --apply",
}

// fileFlags hold paths, which a service needs whole.
var fileFlags = map[string]bool{"rsa-private-key": true, "authorized-users": true}

func (o *serviceOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.install, "install-service", "", "make this command line a service that starts with the machine (Windows, systemd; an administrator's right); =print only prints it")
	f.BoolVar(&o.uninstall, "uninstall-service", false, "stop that service and remove it")
	f.StringVar(&o.log, "service-log", "", "Windows service: append its lines to this file instead of the event log")
	f.BoolVar(&o.managed, "run-as-service", false, "the service manager starts this process")
	if flag := f.Lookup("install-service"); flag != nil {
		flag.NoOptDefVal = installNow
	}
	if flag := f.Lookup("run-as-service"); flag != nil {
		flag.Hidden = true
	}
}

// serveOrService serves, or does what the words about the service say.
func (e *env) serveOrService(cmd *cobra.Command, o *serveOptions) error {
	ctx := cmd.Context()
	s := &o.service
	switch {
	case s.uninstall:
		if cmd.Flags().NFlag() > 1 {
			return usagef("--uninstall-service stands alone")
		}
		done, err := e.serviceManager().Uninstall(ctx)
		return e.serviceDone(done, err)
	case s.install != "":
		return e.installService(ctx, cmd, o)
	case s.managed:
		return e.serveManaged(o)
	case s.log != "":
		return usagef("--service-log is for --install-service")
	}
	return e.runServe(ctx, o)
}

func (e *env) serviceManager() service.Manager {
	if e.Services != nil {
		return *e.Services
	}
	return service.This()
}

// serviceDone prints what was done, which comes before what then failed.
func (e *env) serviceDone(done []string, err error) error {
	for _, d := range done {
		fmt.Fprintln(e.Out, d)
	}
	if err != nil {
		return &codeError{code: exitRefused, err: err}
	}
	return nil
}

func (e *env) installService(ctx context.Context, cmd *cobra.Command, o *serveOptions) error {
	if how := o.service.install; how != installNow && how != installPrint {
		return usagef("--install-service=%s: it takes nothing, or =print", how)
	}
	spec, err := e.serviceSpec(cmd, o)
	if err != nil {
		return err
	}
	var done []string
	if o.service.install == installNow {
		done, err = e.serviceManager().Install(ctx, spec)
		if err == nil {
			if err := e.serviceDone(done, nil); err != nil {
				return err
			}
			fmt.Fprintln(e.Out, "See whether a packet filter lets others in: fullbore firewall show")
			return nil
		}
		if !errors.Is(err, service.ErrPrint) {
			return e.serviceDone(done, err)
		}
		fmt.Fprintf(e.Err, "fullbore: %v\n", err)
	}
	file, text, steps, err := service.Text(spec)
	if err != nil {
		return &codeError{code: exitRefused, err: err}
	}
	if file != "" {
		fmt.Fprintf(e.Err, "# %s\n", file)
		if _, err := io.WriteString(e.Out, text); err != nil {
			return err
		}
	}
	for _, step := range steps {
		fmt.Fprintf(e.Err, "# then: %s\n", step)
	}
	if o.service.install == installNow {
		return &codeError{code: exitRefused} // it was said why
	}
	return nil
}

// serviceSpec is the command line as a service has it.
func (e *env) serviceSpec(cmd *cobra.Command, o *serveOptions) (service.Spec, error) {
	s, err := o.resolve()
	if err != nil {
		return service.Spec{}, err
	}
	program, err := e.Executable()
	if err != nil {
		return service.Spec{}, fmt.Errorf("service: this program's path: %w", err)
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	spec := service.Spec{Description: "fullbore: answers iperf3, NTTTCP and fullbore clients", Program: program}
	spec.Args = append(spec.Args, service.Arg{Text: "serve"})
	for _, p := range firewall.Of(s) {
		spec.LowPorts = spec.LowPorts || p.First < 1024
	}
	var faults []error
	err = cmd.Flags().ParseAll(e.words, func(f *pflag.Flag, value string) error {
		switch {
		case f.Name == "install-service":
			return nil
		case notInService[f.Name] != "":
			faults = append(faults, fmt.Errorf("--%s does not go with --install-service: %s", f.Name, notInService[f.Name]))
			return nil
		}
		arg := service.Arg{Text: "--" + f.Name + "=" + value}
		if fileFlags[f.Name] || f.Name == "service-log" {
			path, err := filepath.Abs(value)
			if err != nil {
				return err
			}
			arg = service.Arg{Text: "--" + f.Name + "=" + path}
			if f.Name == "service-log" {
				spec.Log = path
			}
			if fileFlags[f.Name] {
				arg = service.Arg{Text: "--" + f.Name + "=", File: path}
			}
		}
		spec.Args = append(spec.Args, arg)
		return nil
	})
	if err = errors.Join(append(faults, err)...); err != nil {
		return spec, usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if service.Managed {
		spec.Args = append(spec.Args, service.Arg{Text: "--run-as-service"})
	}
	return spec, nil
}

// tellManager tells the service manager that started this process that it listens.
func (e *env) tellManager(ctx context.Context) {
	if e.listens != nil {
		e.listens()
	}
	if err := service.Ready(ctx, e.Getenv("NOTIFY_SOCKET")); err != nil {
		fmt.Fprintf(e.Err, "fullbore: %v\n", err)
	}
}

// serveManaged serves under the service manager. Signals are not for a service: Windows
// sends one to all processes when somebody logs off.
func (e *env) serveManaged(o *serveOptions) error {
	code, err := service.Main(o.service.log, func(ctx context.Context, out, errs io.Writer, ready func()) int {
		in := *e
		in.In, in.Out, in.Err = strings.NewReader(""), out, errs
		in.IsProcess, in.listens = false, ready
		err := in.runServe(ctx, o)
		if err != nil {
			in.printError(err)
		}
		return exitCode(err)
	})
	switch {
	case err != nil:
		return &codeError{code: exitRefused, err: err}
	case code != exitOK:
		return &codeError{code: code}
	}
	return nil
}
