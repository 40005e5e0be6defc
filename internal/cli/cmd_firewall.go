package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/firewall"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/screen"
)

type firewallOptions struct {
	listen   []string
	base     int
	ports    int
	noNTTTCP bool
	allow    []string
	zone     string
	with     string
	program  string
	apply    bool
	json     bool
	fail     bool
}

const firewallLong = `Say which packet filter of this host stands in the way of a receiver's ports, print the
commands that let them in or take that back, and apply them only with --apply.

Linux: nftables, iptables, firewalld and ufw, each in its own words; Windows: Windows Defender
Firewall, by program; macOS, FreeBSD: the lines are printed, not applied. Ports are those of
fullbore serve: give the same --listen, --ntttcp-base, --ntttcp-ports and --no-ntttcp here.
Rules are named "fullbore"; those of a single run (serve --open-firewall) have the process in
their name, and where a killed one left its rule behind the next change removes it.`

const firewallExample = `  fullbore firewall show
  fullbore firewall add                       print the commands
  sudo fullbore firewall add --apply --allow 10.0.0.0/8
  sudo fullbore firewall remove --apply
  fullbore firewall add --with netsh --program 'C:\tools\fullbore.exe'   for another machine
  fullbore serve --open-firewall              only while it runs`

func newFirewallCmd(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "firewall", Short: "Let a receiver's ports through this host's packet filter", Long: firewallLong, Example: firewallExample,
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return &UsageError{Msg: "say what to do: firewall show, add or remove", Hints: []string{"see: fullbore firewall --help"}}
		},
	}
	for _, sub := range []struct {
		use, short string
		run        func(context.Context, *firewallOptions) error
		flags      func(*firewallOptions, *pflag.FlagSet)
	}{
		{"show", "What filters here, which of our rules exist, and whether the ports look open", e.firewallShow, (*firewallOptions).showFlags},
		{"add", "Print the commands that let the ports in; run them with --apply", e.firewallAdd, (*firewallOptions).addFlags},
		{"remove", "Print the commands that take our rules back; run them with --apply", e.firewallRemove, (*firewallOptions).removeFlags},
	} {
		o := &firewallOptions{}
		c := &cobra.Command{Use: sub.use, Short: sub.short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return sub.run(ctx, o)
		}}
		f := c.Flags()
		sub.flags(o, f)
		f.StringVar(&o.zone, "zone", "", "firewalld: the zone (default: its default zone)")
		f.StringVar(&o.program, "program", "", "Windows, macOS: the whole path of the program that the rules are for (default: this one)")
		f.BoolVar(&o.json, "json", false, "print JSON")
		if f.Lookup("apply") != nil {
			c.MarkFlagsMutuallyExclusive("with", "apply")
		}
		cmd.AddCommand(c)
	}
	return cmd
}

func (o *firewallOptions) showFlags(f *pflag.FlagSet) {
	o.portFlags(f)
	f.BoolVar(&o.fail, "fail", false, "exit code 1 when a port is not open, 2 when that cannot be told")
}

func (o *firewallOptions) addFlags(f *pflag.FlagSet) {
	o.portFlags(f)
	o.changeFlags(f)
	f.StringSliceVar(&o.allow, "allow", nil, "let in these networks only, e.g. 10.0.0.0/8")
}

func (o *firewallOptions) removeFlags(f *pflag.FlagSet) { o.changeFlags(f) }

func (o *firewallOptions) portFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.listen, "listen", nil, "ADDR:PORT or :PORT or :FIRST-LAST, as for serve; repeatable (default :5201)")
	f.IntVar(&o.base, "ntttcp-base", plan.NTTTCPPort, "first data port of NTTTCP, as for serve")
	f.IntVar(&o.ports, "ntttcp-ports", plan.NTTTCPPorts, "data ports of NTTTCP, as for serve")
	f.BoolVar(&o.noNTTTCP, "no-ntttcp", false, "no ports for NTTTCP")
}

func (o *firewallOptions) changeFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.apply, "apply", false, "run the commands (an administrator's right)")
	f.StringVar(&o.with, "with", "", "print for this filter without looking at the host: "+strings.Join(firewall.Kinds, ", "))
}

// serve is the server whose ports are meant.
func (o *firewallOptions) serve() (plan.Serve, error) {
	so := serveOptions{listen: o.listen, allow: o.allow, facts: "basic", noNTTTCP: true}
	s, err := so.resolve()
	if err != nil {
		return s, err
	}
	s.NTTTCP = nil
	if !o.noNTTTCP {
		p := plan.Plan{Port: o.base, NTTTCP: &plan.NTTTCP{Role: plan.NTTTCPReceiver, Ports: o.ports}}
		if o.base < 2 || o.ports < 1 || o.ports > plan.MaxNTTTCPPorts || o.base+o.ports-1+plan.NTTTCPTokenOffset > 65535 {
			return s, usagef("--ntttcp-base %d, --ntttcp-ports %d: the base must be 2 or more, the ports 1…%d, and 1000 above the last must be a port too", o.base, o.ports, plan.MaxNTTTCPPorts)
		}
		s.NTTTCP = &p
	}
	return s, nil
}

// system is this machine, or the test's.
func (e *env) firewallSystem(o *firewallOptions) (firewall.System, error) {
	program := o.program
	if program == "" {
		exe, err := e.Executable()
		if err != nil {
			return firewall.System{}, fmt.Errorf("firewall: this program's path: %w", err)
		}
		if program, err = filepath.EvalSymlinks(exe); err != nil {
			program = exe
		}
	}
	sys := firewall.This(program)
	if e.Firewall != nil {
		sys = *e.Firewall
		sys.Program = program
	}
	sys.Zone = o.zone
	return sys, nil
}

// firewallDocument is the JSON form of all three commands.
type firewallDocument struct {
	Summary string           `json:"summary"`
	Ports   []firewall.Ports `json:"ports,omitempty"`
	Layers  []firewallLayer  `json:"layers"`
	Unread  []string         `json:"unread"`
	Notes   []string         `json:"notes"`
	Applied bool             `json:"applied"`
}

type firewallLayer struct {
	Kind     string             `json:"kind"`
	Title    string             `json:"title"`
	Rules    []firewall.Rule    `json:"rules,omitempty"`
	Answers  []firewallAnswer   `json:"answers,omitempty"`
	Commands []firewall.Command `json:"commands,omitempty"`
	Why      string             `json:"why,omitempty"`
}

type firewallAnswer struct {
	Ports string `json:"ports"`
	For   string `json:"for"`
	firewall.Answer
}

func newFirewallDocument(h *firewall.Host) firewallDocument {
	d := firewallDocument{Layers: []firewallLayer{}, Unread: []string{}, Notes: []string{}}
	d.Unread = append(d.Unread, h.Unread...)
	d.Notes = append(d.Notes, h.Notes...)
	return d
}

func (e *env) firewallShow(ctx context.Context, o *firewallOptions) error {
	s, err := o.serve()
	if err != nil {
		return err
	}
	sys, err := e.firewallSystem(o)
	if err != nil {
		return err
	}
	h, err := firewall.Look(ctx, sys)
	if err != nil {
		return err
	}
	d := newFirewallDocument(h)
	d.Ports = firewall.Of(s)
	worst := firewall.Open
	for _, l := range h.Layers {
		one := firewallLayer{Kind: l.Kind(), Title: l.Title()}
		for _, r := range l.Rules() {
			r.Stale = firewall.Stale(r.Name, sys.Alive)
			one.Rules = append(one.Rules, r)
		}
		for _, p := range d.Ports {
			a := l.Judge(p)
			one.Answers = append(one.Answers, firewallAnswer{p.String(), p.For, a})
			worst = firewall.Worse(worst, a.Verdict)
		}
		d.Layers = append(d.Layers, one)
	}
	if len(h.Unread) > 0 {
		worst = firewall.Worse(worst, firewall.Depends)
	}
	d.Summary = showSummary(h, worst, len(d.Ports))
	if o.json {
		err = e.printJSON(d)
	} else {
		_, err = e.Out.Write(firewallText(d))
	}
	if err != nil || !o.fail {
		return err
	}
	switch worst {
	case firewall.Closed:
		return &codeError{code: exitMissed}
	case firewall.Depends:
		return &codeError{code: exitInconclusive}
	}
	return nil
}

// showSummary is the first line.
func showSummary(h *firewall.Host, worst firewall.Verdict, ports int) string {
	switch {
	case ports == 0:
		return "No port is taken from other hosts: nothing needs a rule."
	case worst == firewall.Closed:
		return "A receiver's ports are not all open here."
	case worst == firewall.Depends:
		return "Whether a receiver's ports are open here cannot be told for all of them."
	case len(h.Layers) == 0:
		return "Nothing was found that filters what comes in here."
	}
	return "A receiver's ports look open here."
}

// firewallText is what show prints to people.
func firewallText(d firewallDocument) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, d.Summary)
	for _, l := range d.Layers {
		fmt.Fprintf(&b, "\n%s\n", screen.Clean(l.Title))
		if len(l.Rules) == 0 {
			fmt.Fprintln(&b, "  no rule of fullbore")
		}
		for _, r := range l.Rules {
			left := ""
			if r.Stale {
				left = " (left behind by a run that is over)"
			}
			fmt.Fprintf(&b, "  rule %s%s: %s\n", r.Name, left, screen.Clean(r.Text))
		}
		for _, a := range l.Answers {
			fmt.Fprintf(&b, "  %-8s %-14s %s: %s\n", a.Verdict, a.Ports, a.For, screen.Clean(a.Reason))
		}
	}
	if len(d.Unread)+len(d.Notes) > 0 {
		fmt.Fprintln(&b)
	}
	for _, u := range d.Unread {
		fmt.Fprintf(&b, "not read: %s\n", screen.Clean(u))
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "note: %s\n", screen.Clean(n))
	}
	return b.Bytes()
}

func (e *env) firewallAdd(ctx context.Context, o *firewallOptions) error {
	s, err := o.serve()
	if err != nil {
		return err
	}
	sys, err := e.firewallSystem(o)
	if err != nil {
		return err
	}
	w := firewall.Wanted{Name: firewall.Kept, Program: sys.Program, Ports: firewall.Of(s), Allow: s.Allow}
	if len(w.Ports) == 0 {
		return usagef("--listen names loopback addresses only: nothing needs a rule")
	}
	if o.with != "" {
		layers, err := firewall.Blank(o.with, sys.Program)
		if err != nil {
			return usagef("--with %v", err)
		}
		return e.firewallPrint(o, w.Ports, &firewall.Host{Layers: layers}, (&firewall.Host{Layers: layers}).Adding(w))
	}
	h, err := firewall.Look(ctx, sys)
	if err != nil {
		return err
	}
	changes := h.Opening(w)
	if len(h.Layers) == 0 && len(h.Unread) > 0 && !o.apply {
		// Better than nothing to print: where most systems have their rules.
		layers, err := firewall.Blank("nft", sys.Program)
		if err != nil {
			return err
		}
		h.Notes = append(h.Notes, "these lines are for the usual chain of nftables; as an administrator fullbore prints those for what really filters here")
		return e.firewallPrint(o, w.Ports, h, (&firewall.Host{Layers: layers}).Adding(w))
	}
	if !o.apply {
		return e.firewallPrint(o, w.Ports, h, changes)
	}
	return e.firewallApply(ctx, o, sys, h, changes, w)
}

func (e *env) firewallRemove(ctx context.Context, o *firewallOptions) error {
	sys, err := e.firewallSystem(o)
	if err != nil {
		return err
	}
	if o.with != "" {
		layers, err := firewall.Blank(o.with, sys.Program)
		if err != nil {
			return usagef("--with %v", err)
		}
		h := &firewall.Host{Layers: layers}
		return e.firewallPrint(o, nil, h, h.Closing(firewall.Kept))
	}
	h, err := firewall.Look(ctx, sys)
	if err != nil {
		return err
	}
	changes := h.Closing(append([]string{firewall.Kept}, h.Stale(sys.Alive)...)...)
	if !o.apply {
		return e.firewallPrint(o, nil, h, changes)
	}
	return e.firewallApply(ctx, o, sys, h, changes, firewall.Wanted{})
}

// firewallPrint prints the commands on standard output, so that they can go to a file or
// a shell, and what is said about them on standard error.
func (e *env) firewallPrint(o *firewallOptions, ports []firewall.Ports, h *firewall.Host, changes []firewall.Change) error {
	d := newFirewallDocument(h)
	d.Ports = ports
	n := 0
	for _, c := range changes {
		n += len(c.Commands)
		d.Layers = append(d.Layers, firewallLayer{Kind: c.Layer.Kind(), Title: c.Layer.Title(), Commands: c.Commands, Why: c.Why})
	}
	d.Summary = changeSummary(h, n)
	if o.json {
		return e.printJSON(d)
	}
	fmt.Fprintln(e.Err, d.Summary)
	if err := e.firewallCommands(changes); err != nil {
		return err
	}
	e.firewallRemarks(h)
	return nil
}

func changeSummary(h *firewall.Host, commands int) string {
	switch {
	case commands > 0:
		return fmt.Sprintf("Nothing is changed without --apply. What would be done (%d commands):", commands)
	case len(h.Unread) > 0:
		return "Not all rules can be read here, so it cannot be told what is to be done."
	case len(h.Layers) == 0:
		return "Nothing was found that filters what comes in here: no rule is needed."
	}
	return "Nothing is to be done."
}

// firewallCommands prints what belongs to each layer.
func (e *env) firewallCommands(changes []firewall.Change) error {
	for _, c := range changes {
		if c.Why != "" {
			fmt.Fprintf(e.Err, "# %s %s\n", screen.Clean(c.Layer.Title()), screen.Clean(c.Why))
		}
		for _, cmd := range c.Commands {
			if cmd.Why != "" {
				fmt.Fprintf(e.Err, "# %s\n", cmd.Why)
			}
			if _, err := fmt.Fprintln(e.Out, cmd.Line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *env) firewallRemarks(h *firewall.Host) {
	for _, u := range h.Unread {
		fmt.Fprintf(e.Err, "not read: %s\n", screen.Clean(u))
	}
	for _, n := range h.Notes {
		fmt.Fprintf(e.Err, "note: %s\n", screen.Clean(n))
	}
}

// firewallApply does what was planned, removes what killed runs left, and looks again.
func (e *env) firewallApply(ctx context.Context, o *firewallOptions, sys firewall.System, h *firewall.Host, changes []firewall.Change, w firewall.Wanted) error {
	if len(h.Unread) > 0 {
		e.firewallRemarks(h)
		err := errors.New("firewall: not all rules could be read: nothing was changed")
		if !sys.Privileged {
			err = &firewall.PrivilegeError{Err: err}
		}
		return firewallFault(err)
	}
	if w.Name != "" {
		if stale := h.Stale(sys.Alive); len(stale) > 0 {
			changes = append(h.Closing(stale...), changes...)
		}
	}
	if err := firewall.Apply(ctx, sys, changes, w.Name); err != nil {
		return firewallFault(err)
	}
	after, err := firewall.Look(ctx, sys)
	if err != nil {
		return err
	}
	d := newFirewallDocument(after)
	d.Ports, d.Applied = w.Ports, true
	n := 0
	for _, c := range changes {
		n += len(c.Commands)
		d.Layers = append(d.Layers, firewallLayer{Kind: c.Layer.Kind(), Title: c.Layer.Title(), Commands: c.Commands, Why: c.Why})
	}
	d.Summary = fmt.Sprintf("Done: %d commands.", n)
	if n == 0 {
		d.Summary = changeSummary(h, 0)
	}
	var shut []string
	for _, l := range after.Layers {
		for _, p := range w.Ports {
			if a := l.Judge(p); a.Verdict == firewall.Closed || a.Verdict == firewall.Depends && len(w.Allow) == 0 {
				shut = append(shut, fmt.Sprintf("%s, %s: %s", p, l.Title(), a.Reason))
			}
		}
	}
	if o.json {
		err = e.printJSON(d)
	} else {
		fmt.Fprintln(e.Err, d.Summary)
		if err = e.firewallCommands(changes); err == nil {
			e.firewallLasting(changes, w.Name != "")
			e.firewallRemarks(after)
		}
	}
	if err == nil && len(shut) > 0 {
		return &codeError{code: exitMissed, err: fmt.Errorf("firewall: %d of the ranges are not open after the change: %s", len(shut), shut[0])}
	}
	return err
}

func (e *env) firewallLasting(changes []firewall.Change, added bool) {
	for _, c := range changes {
		if added && len(c.Commands) > 0 {
			fmt.Fprintf(e.Err, "note: rules of %s stay %s\n", screen.Clean(c.Layer.Title()), c.Layer.Lasting())
		}
	}
}

// firewallFault gives an error its exit code.
func firewallFault(err error) error {
	var denied *firewall.PrivilegeError
	if errors.As(err, &denied) || errors.Is(err, firewall.ErrByHand) {
		return &codeError{code: exitRefused, err: err}
	}
	return err
}

// closingTime bounds the removal of a run's rule.
const closingTime = 90 * time.Second

// openFirewall lets the ports of s in until the function that it returns is called, which
// works after ctx is done. It says on stderr what it did.
func (e *env) openFirewall(ctx context.Context, s plan.Serve) (shut func(), err error) {
	sys, err := e.firewallSystem(&firewallOptions{})
	if err != nil {
		return nil, err
	}
	w := firewall.Wanted{Name: firewall.RunName(os.Getpid(), e.Now()), Program: sys.Program, Ports: firewall.Of(s), Allow: s.Allow}
	if len(w.Ports) == 0 {
		fmt.Fprintln(e.Err, "fullbore: firewall: this listens on loopback only: nothing was opened")
		return func() {}, nil
	}
	run, err := firewall.OpenForRun(ctx, sys, w)
	if err != nil {
		return nil, firewallFault(err)
	}
	for _, name := range run.Removed {
		fmt.Fprintf(e.Err, "fullbore: firewall: removed %s, left behind by a run that is over\n", name)
	}
	for _, c := range run.Changes {
		what := c.Why
		if len(c.Commands) > 0 {
			what = "lets this receiver in until it ends (rule " + w.Name + ")"
		}
		fmt.Fprintf(e.Err, "fullbore: firewall: %s %s\n", screen.Clean(c.Layer.Title()), screen.Clean(what))
	}
	if len(run.Changes) == 0 {
		fmt.Fprintln(e.Err, "fullbore: firewall: nothing was found that filters what comes in")
	}
	for _, n := range run.Host.Notes {
		fmt.Fprintf(e.Err, "fullbore: firewall: %s\n", screen.Clean(n))
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
		defer cancel()
		if err := run.Close(ctx); err != nil {
			fmt.Fprintf(e.Err, "fullbore: %v; the rule %s is left: fullbore firewall remove --apply\n", err, w.Name)
		}
	}, nil
}

// listeningOn is s with the ports that were really bound.
func listeningOn(s plan.Serve, lns []net.Listener) plan.Serve {
	s.Listen = nil
	for _, ln := range lns {
		if ap, err := netip.ParseAddrPort(ln.Addr().String()); err == nil {
			s.Listen = append(s.Listen, ap)
		}
	}
	return s
}
