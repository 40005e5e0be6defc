package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/bdp"
	"github.com/fullbore-net/fullbore/internal/units"
)

type bdpOptions struct {
	windows []string
	json    bool
}

const bdpLong = `Say how many bytes must be on the way to fill RATE over a round trip of RTT (the
bandwidth-delay product), what one window carries at most, and which settings of
Linux and Windows allow the window that is needed. Nothing is measured or changed.`

const bdpExample = `  fullbore bdp 10G 10ms
  fullbore bdp 200M 28ms --window 64K --window 1M
  fullbore bdp 1Gbit/s 350us --json`

func newBDPCmd(e *env) *cobra.Command {
	o := &bdpOptions{}
	cmd := &cobra.Command{
		Use:     "bdp RATE RTT",
		Short:   "Bandwidth-delay product, what a window carries, the settings for it",
		Long:    bdpLong,
		Example: bdpExample,
		Args:    cobra.ExactArgs(2),
		RunE:    func(_ *cobra.Command, args []string) error { return e.runBDP(o, args[0], args[1]) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.windows, "window", "w", nil, "also show what this window carries, e.g. 2M; repeatable")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (e *env) runBDP(o *bdpOptions, rateWord, rttWord string) error {
	rate, err := units.ParseRate(rateWord)
	if err != nil {
		return usagef("RATE: %v", err)
	}
	rtt, err := units.ParseDuration(rttWord)
	if err != nil {
		return usagef("RTT: %v", err)
	}
	if rate == 0 || rtt == 0 {
		return &UsageError{Msg: "rate and round-trip time must be more than 0", Hints: []string{"for example: fullbore bdp 10G 10ms"}}
	}
	var asked []units.ByteSize
	for _, w := range o.windows {
		v, err := units.ParseSize(w)
		if err != nil || v == 0 {
			return usagef("--window %q: must be a size, for example 2M", w)
		}
		asked = append(asked, v)
	}
	r := bdp.For(rate, rtt, asked...)
	if o.json {
		return e.printJSON(r)
	}
	_, err = e.Out.Write(bdpText(r, rate, units.FormatDuration(rtt)))
	return err
}

// printJSON writes v as one indented document.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func bdpText(r bdp.Report, rate units.BitRate, rtt string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s over %s keep %s on the way; a window should be twice that.\n\n", rate, rtt, r.BDP)
	fmt.Fprintf(&b, "  BDP      %d bytes (%s)\n  2 × BDP  %d bytes (%s)\n\n", r.BDP, r.BDP.IEC(), r.Twice, r.Twice.IEC())
	fmt.Fprintf(&b, "  %12s  %20s  %s\n", "window", "carries at most", "streams that fill the path")
	for _, c := range r.Carried {
		mark := ""
		if c.Asked {
			mark = "  (asked for)"
		}
		fmt.Fprintf(&b, "  %12s  %20s  %d%s\n", windowName(c.Window), megabits(c.Rate), c.Needed, mark)
	}
	if r.MinStreams > 1 {
		fmt.Fprintf(&b, "\n  No TCP window exceeds 1 GiB (RFC 7323): at least %d streams.\n", r.MinStreams)
	}
	bdpLinux(&b, r.Linux)
	bdpWindows(&b, r)
	fmt.Fprintf(&b, "\nNext: fullbore doctor --rate %s --rtt %s compares this host with it.\n", rate.Exact(), squeeze(rtt))
	return b.Bytes()
}

func bdpLinux(b *bytes.Buffer, s bdp.LinuxSettings) {
	fmt.Fprintf(b, "\nLinux, both ends, until the next boot. These are least values: keep a larger one that is there.\n")
	for _, l := range s.Lines {
		fmt.Fprintf(b, "  %s\n", l)
	}
	fmt.Fprintf(b, "The first two bound only what -w may ask for. Half of a socket's buffer is window, so the\nlast two are twice the window.")
	if s.ByDefault {
		fmt.Fprintf(b, " Their defaults are enough here: without -w nothing need be set.")
	}
	b.WriteByte('\n')
}

func bdpWindows(b *bytes.Buffer, r bdp.Report) {
	s := r.WindowsOS
	fmt.Fprintf(b, "\nWindows: auto-tuning level %s, windows up to %s.\n", s.Level, s.Max.IEC())
	for _, l := range s.Netsh {
		fmt.Fprintf(b, "  %s\n", l)
	}
	fmt.Fprintf(b, "or in PowerShell:\n")
	for _, l := range s.PowerShell {
		fmt.Fprintf(b, "  %s\n", l)
	}
	if s.Level == "experimental" {
		normal := bdp.WindowsLevels[3]
		fmt.Fprintf(b, "Microsoft means that level for extreme paths only; %d streams at level %s carry as much.\n",
			max(2, bdp.Streams(r.BDP, normal.Max)), normal.Name)
	}
}

// windowName prints a size exactly: 64 KiB, 1 MiB, 65535 B.
func windowName(w units.ByteSize) string {
	for _, u := range []struct {
		size units.ByteSize
		name string
	}{{units.GiB, "GiB"}, {units.MiB, "MiB"}, {units.KiB, "KiB"}} {
		if w >= u.size && w%u.size == 0 {
			return fmt.Sprintf("%d %s", w/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d B", w)
}

// megabits prints a rate with five significant digits, all in one unit so that a column
// can be compared.
func megabits(r units.BitRate) string {
	v := float64(r) / 1e6
	decimals := 0
	if v > 0 {
		decimals = max(0, 4-int(math.Floor(math.Log10(v))))
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = trimZeros(s)
	}
	return s + " Mbit/s"
}

func trimZeros(s string) string {
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// squeeze takes the blank out of "28 ms", so that it is one word on a command line.
func squeeze(s string) string {
	out := make([]rune, 0, len(s))
	for _, c := range s {
		switch c {
		case ' ':
		case 'µ':
			out = append(out, 'u')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
