package cli

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	compat "github.com/fullbore-net/fullbore/internal/cli/compat/iperf3"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	proto "github.com/fullbore-net/fullbore/internal/proto/iperf3"
	"github.com/fullbore-net/fullbore/internal/render/iperf3json"
	"github.com/fullbore-net/fullbore/internal/render/iperf3text"
	"github.com/fullbore-net/fullbore/internal/render/iperf3view"
	"github.com/fullbore-net/fullbore/result"
)

// newIperf3Cmd is only the entry in the native help: Main hands the words over before
// cobra could look at them.
func newIperf3Cmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:                "iperf3 …",
		Short:              "Be iperf3: its options, its text, its JSON",
		Long:               "Be iperf3 3.21: the same options, text and JSON. See: fullbore iperf3 --help",
		Example:            "  fullbore iperf3 -s\n  fullbore iperf3 -c HOST -R -J",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return &codeError{code: e.iperf3(cmd.Context(), "iperf3", args)}
		},
	}
}

// dropin is one run of the drop-in: where its output goes and how it looks.
type dropin struct {
	*env
	argv0   string
	args    []string
	out     compat.Output
	release iperf3view.Release
	stdout  io.Writer // results; the log file when there is one
	stderr  io.Writer // run-time errors; the log file when there is one
	system  string    // uname's line
	length  bool      // -l was given
}

// iperf3 is the drop-in. It returns the exit code.
func (e *env) iperf3(ctx context.Context, argv0 string, args []string) int {
	release, err := compat.ParseRelease(e.Getenv(compat.ReleaseVariable))
	if err != nil {
		fmt.Fprintf(e.Err, "fullbore: %v\n", err)
	}
	if e.IsProcess {
		signal.Ignore(syscall.SIGPIPE) // as iperf3: a server outlives the reader of its output
	}
	system := oshost.Facts(ctx, netip.Addr{}).SystemInfo
	inv, exit := compat.Parse(argv0, args, compat.World{
		Release:   release,
		Password:  e.password,
		ReadFile:  os.ReadFile,
		Stat:      os.Stat,
		Timestamp: func(format string) string { return iperf3text.Timestamp(format, e.Now()) },
		Build:     Version,
		System:    func() string { return system },
		Features:  features(),
	})
	if exit != nil {
		_, _ = io.WriteString(e.Out, exit.Stdout)
		_, _ = io.WriteString(e.Err, exit.Stderr)
		return exit.Code
	}
	_, _ = io.WriteString(e.Out, inv.Stdout)
	_, _ = io.WriteString(e.Err, inv.Stderr)
	d := &dropin{
		env: e, argv0: argv0, args: args, out: inv.Output, release: iperf3view.Release(inv.Output.Release),
		stdout: e.Out, stderr: e.Err, system: system,
	}
	if inv.Plan != nil {
		d.length = inv.Plan.BlockSize != 0
		return d.client(ctx, inv)
	}
	return d.server(ctx, inv)
}

// password is IPERF3_PASSWORD, else what the user types, else none.
func (e *env) password(string) (string, bool) {
	if p := e.Getenv("IPERF3_PASSWORD"); p != "" {
		return p, true
	}
	if !e.InTerminal || e.ReadSecret == nil {
		return "", false
	}
	p, err := e.ReadSecret("Password: ")
	return p, err == nil && p != ""
}

// features is what -v lists: what this build can do on this system.
func features() []compat.Feature {
	caps := osnet.Capabilities()
	out := []compat.Feature{compat.FeatureAuth, compat.FeatureThreads}
	for _, f := range []struct {
		has  bool
		name compat.Feature
	}{
		{caps.Affinity, compat.FeatureAffinity},
		{caps.FlowLabel, compat.FeatureFlowLabel},
		{caps.Congestion, compat.FeatureCongestion},
		{caps.SendFile, compat.FeatureZeroCopy},
		{caps.Pacing, compat.FeaturePacing},
		{caps.BindDevice, compat.FeatureBindDev},
	} {
		if f.has {
			out = append(out, f.name)
		}
	}
	return out
}

// openLog redirects results and run-time errors into the log file (append, mode 0644
// less the umask). It says what is wrong on the real stderr.
func (d *dropin) openLog() (io.Closer, bool) {
	if d.out.Logfile == "" {
		return io.NopCloser(strings.NewReader("")), true
	}
	f, err := os.OpenFile(d.out.Logfile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		d.fail("unable to open log file: %s: %s", d.out.Logfile, proto.Reason(err))
		return nil, false
	}
	d.stdout, d.stderr = f, f
	return f, true
}

// fail prints an error that ends the program before or outside of any test.
func (d *dropin) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if d.out.JSON {
		run := &result.Run{Err: &result.Error{Code: "failed", Text: text}}
		if err := d.document(run, result.Server); lost(err) {
			fmt.Fprintf(d.Err, "iperf3: error - %v\n", err)
		}
		return
	}
	fmt.Fprintf(d.stderr, "%siperf3: error - %s\n", d.timestamp(), text)
}

func (d *dropin) timestamp() string {
	if d.out.Timestamps == "" {
		return ""
	}
	return iperf3text.Timestamp(d.out.Timestamps, d.Now())
}

func (d *dropin) jsonOptions(end result.End) iperf3json.Options {
	return iperf3json.Options{Release: d.release, End: end, SystemInfo: d.system, Full: d.out.FullOutput}
}

func (d *dropin) textOptions(end result.End) iperf3text.Options {
	o := iperf3text.Options{
		Release: d.release, Format: d.out.Format, Verbose: d.out.Verbose, Length: d.length, Timestamps: d.out.Timestamps, Now: d.Now,
		Err: d.stderr, Raw: d.Out, End: end, SystemInfo: d.system, ErrorLines: d.errorLines,
	}
	if o.Format == 'a' {
		o.Format = 0
	}
	return o
}

// document prints one -J document.
func (d *dropin) document(run *result.Run, end result.End) error {
	_, err := d.stdout.Write(iperf3json.Document(run, d.jsonOptions(end)))
	return err
}

// view is a renderer of one test in the wanted form.
type view interface {
	result.Sink
	Close() error
}

// newView makes the renderer of one test.
func (d *dropin) newView(end result.End) *worded {
	return &worded{d: d, end: end, view: d.renderer(end)}
}

func (d *dropin) renderer(end result.End) view {
	switch {
	case d.out.JSONStream:
		return iperf3json.NewStream(d.stdout, d.jsonOptions(end))
	case d.out.JSON:
		return &documentView{d: d, end: end}
	}
	return iperf3text.New(d.stdout, d.textOptions(end))
}

// worded puts a run's error into iperf3's words, which scripts look for, and keeps ours
// behind them where they say more.
type worded struct {
	view
	d   *dropin
	end result.End
}

// unsaid are notices about UDP that the drop-in does not repeat: iperf3's own words tell
// the first, and the second is about a figure that its columns do not have.
var unsaid = []string{"fragments", "tail-uncounted"}

// Event implements result.Sink.
func (w *worded) Event(e result.Event) {
	lines := senderWarnings(e, w.end)
	if w.end == result.Client {
		lines = slices.Concat(udpWarnings(e), lines, arrivalWarnings(e))
	}
	for _, line := range lines {
		fmt.Fprintf(w.d.Err, "warning: %s\n", line) // past the log file, as iperf3's
	}
	if e.Kind == result.KindNotice && slices.Contains(unsaid, e.Notice.Code) {
		return
	}
	if e.Kind == result.KindError && w.d.out.JSON {
		said := proto.InWords(e.Err, w.end, w.d.release.String())
		if more := detail(e.Err, said); more != "" {
			said.Text += " (" + more + ")"
		}
		e.Err = said
	}
	if e.Kind == result.KindNotice && e.Notice.Level == result.Warn && w.d.out.JSON {
		fmt.Fprintf(w.d.stderr, "warning: %s\n", e.Notice.Text) // the document has no place for it
	}
	w.view.Event(e)
}

// errorLines is what the text output says about an error: iperf3's line, then ours.
func (d *dropin) errorLines(e *result.Error, end result.End, _ string) []string {
	said := proto.InWords(e, end, d.release.String())
	lines := iperf3view.ErrorLines(said, end, d.release)
	if more := detail(e, said); more != "" {
		lines = append(lines, more)
	}
	return lines
}

// detail is what our words add to iperf3's, "" when nothing.
func detail(e, said *result.Error) string {
	ours := strings.TrimPrefix(e.Text, "the server says: ")
	if e == said || e.Interrupted || ours == "" || strings.EqualFold(ours, said.Text) {
		return ""
	}
	return e.Text
}

// documentView collects a run and prints it when it is over.
type documentView struct {
	d    *dropin
	end  result.End
	fold result.Folder
}

// Event implements result.Sink.
func (v *documentView) Event(e result.Event) {
	v.fold.Event(e)
}

// Close prints the document.
func (v *documentView) Close() error { return v.d.document(v.fold.Run(), v.end) }
