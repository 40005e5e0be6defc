package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/units"
)

// ShellOptions describe the path that Shell opens, the same in both directions. The
// zero value of each field means its default.
type ShellOptions struct {
	Rate  int64         // bit/s on whole IP packets; default 100 Mbit/s
	RTT   time.Duration // of the empty path; default 20 ms
	Queue int64         // bytes that may wait; default one bandwidth-delay product, at least ten packets
	Loss  float64       // probability of random loss, 0 to 1, in each direction
	// Faults are what else happens to packets in each direction.
	Faults link.Faults
	Seed   uint64 // of the loss and the faults
	MTU    int    // default 1500
	CC     string // congestion control of both ends; default cubic
	// Fullbore is the path of the fullbore program: its hidden command is the link
	// process, and its directory comes first in the shell's PATH.
	Fullbore string
	// Server is the server's command line; default Fullbore "serve".
	Server []string
	// Program is the shell; default $SHELL, else /bin/sh.
	Program string
}

// Stdio are the streams of a terminal program.
type Stdio struct{ In, Out, Err *os.File }

const minShellQueue = 10 // packets

// filled returns a copy with the defaults filled in.
func (o ShellOptions) filled() ShellOptions {
	if o.Rate == 0 {
		o.Rate = 100_000_000
	}
	if o.RTT == 0 {
		o.RTT = 20 * time.Millisecond
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.Queue == 0 {
		o.Queue = max(int64(float64(o.Rate)/8*o.RTT.Seconds()), minShellQueue*int64(o.MTU))
	}
	if o.CC == "" {
		o.CC = "cubic"
	}
	if o.Program == "" {
		o.Program = os.Getenv("SHELL")
	}
	if o.Program == "" {
		o.Program = "/bin/sh"
	}
	if len(o.Server) == 0 {
		o.Server = []string{o.Fullbore, "serve"}
	}
	return o
}

// config returns the path; o is filled.
func (o ShellOptions) config() (forward.Config, error) {
	cfg := forward.Config{MTU: o.MTU}
	for i := range cfg.Links {
		cfg.Links[i] = link.Config{
			BitsPerSecond: o.Rate, Delay: o.RTT / 2, QueueBytes: o.Queue, Loss: o.Loss, Seed: o.Seed + uint64(i),
			Faults: o.Faults,
		}
	}
	err := cfg.Validate()
	if o.Queue < int64(o.MTU) {
		err = errors.Join(err, fmt.Errorf("lab: a queue of %d bytes holds no packet of %d", o.Queue, o.MTU))
	}
	return cfg, err
}

// describe says in a few words what the path is like; o is filled.
func (o ShellOptions) describe() string {
	loss := "no random loss"
	if o.Loss > 0 {
		loss = fmt.Sprintf("%g %% random loss", 100*o.Loss)
	}
	return fmt.Sprintf("%s each way, %s round trip, queue %s, %s%s, MTU %d, %s",
		units.BitRate(o.Rate), units.FormatDuration(o.RTT), units.ByteSize(o.Queue), loss, describeFaults(o.Faults), o.MTU, o.CC)
}

// describeFaults is "" or a list that begins with a comma.
func describeFaults(f link.Faults) string {
	var b strings.Builder
	add := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&b, ", "+format, args...)
		}
	}
	t := units.FormatDuration
	order := ""
	if f.Jitter.KeepOrder {
		order = " in order"
	}
	add(f.Jitter.Most > 0, "jitter %s to %s%s", t(f.Jitter.Least), t(f.Jitter.Most), order)
	add(f.Reorder.Packets > 0, "%g %% held back for %d packets", 100*f.Reorder.Share, f.Reorder.Packets)
	add(f.Reorder.Time > 0, "%g %% held back for %s", 100*f.Reorder.Share, t(f.Reorder.Time))
	add(f.Duplicate > 0, "%g %% doubled", 100*f.Duplicate)
	add(f.Bursts.GoodToBad > 0, "bursts of loss (p %g %%, r %g %%)", 100*f.Bursts.GoodToBad, 100*f.Bursts.BadToGood)
	add(f.Outage.For > 0, "an outage of %s after %s", t(f.Outage.For), t(f.Outage.At))
	add(f.Hole > 0, "a hole above %d bytes", f.Hole)
	return b.String()
}

// banner is what Shell prints before it hands over.
func (o ShellOptions) banner(near, far string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "emulated path: %s\n", o.describe())
	fmt.Fprintf(&b, "  this shell  %-10s %-8s (namespace %s)\n", NearIPv4, NearIPv6, near)
	fmt.Fprintf(&b, "  server      %-10s %-8s (namespace %s): %s\n", FarIPv4, FarIPv6, far, strings.Join(o.Server, " "))
	b.WriteString("  variables   $SERVER and $SERVER6 are the server's addresses, $SERVER_LOG its output\n")
	b.WriteString("  try         fullbore test $SERVER\n")
	b.WriteString("  leave       exit; everything is then removed\n")
	return b.String()
}

// farewell says what the path did.
func farewell(rep *LinkReport) string {
	var b strings.Builder
	for i, d := range rep.Directions {
		fmt.Fprintf(&b, "%-4s  %d packets, %s arrived; %d dropped by the queue, %d lost at random, %d lost unasked%s; late p99 %v\n",
			directionName[i], d.Out.Packets, units.ByteSize(d.Out.Bytes), d.Link.Queue.Packets, d.Link.Loss.Packets,
			rep.Unasked[i], faultCounts(d.Link), micros(d.Late.P99))
	}
	if void := rep.Void(); len(void) > 0 {
		fmt.Fprintf(&b, "this machine did not let the path be what it claims to be (%s): do not trust what was measured on it\n", strings.Join(void, "; "))
	}
	return b.String()
}
