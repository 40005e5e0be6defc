package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/units"
)

// The option types: pflag values over the units package, so that every native
// command reads rates, sizes and durations in one spelling.

// exactFlag is an option whose String rounds, for a help text; exact tells a value that was given without loss.
type exactFlag interface{ exact() string }

type rateFlag struct{ bps *int64 }

func (f rateFlag) Set(s string) error {
	r, err := units.ParseRate(s)
	if err == nil {
		*f.bps = int64(r)
	}
	return err
}
func (f rateFlag) Type() string { return "rate" }
func (f rateFlag) String() string {
	if f.bps == nil || *f.bps == 0 {
		return ""
	}
	return units.BitRate(*f.bps).String()
}
func (f rateFlag) exact() string { return units.BitRate(*f.bps).Exact() }

type sizeFlag struct{ bytes *int64 }

func (f sizeFlag) Set(s string) error {
	n, err := units.ParseSize(s)
	if err == nil {
		*f.bytes = int64(n)
	}
	return err
}
func (f sizeFlag) Type() string { return "size" }
func (f sizeFlag) String() string {
	if f.bytes == nil || *f.bytes == 0 {
		return ""
	}
	return units.ByteSize(*f.bytes).IEC()
}
func (f sizeFlag) exact() string { return units.ByteSize(*f.bytes).Exact() }

type durationFlag struct{ d *time.Duration }

func (f durationFlag) Set(s string) error {
	d, err := units.ParseDuration(s)
	if err == nil {
		*f.d = d
	}
	return err
}
func (f durationFlag) Type() string { return "duration" }
func (f durationFlag) String() string {
	if f.d == nil || *f.d == 0 {
		return ""
	}
	return units.FormatDuration(*f.d)
}
func (f durationFlag) exact() string { return f.d.String() }

// sizeFlagInt is sizeFlag over an int.
type sizeFlagInt struct{ bytes *int }

func (f sizeFlagInt) Set(s string) error {
	n, err := units.ParseSize(s)
	if err == nil {
		*f.bytes = int(n)
	}
	return err
}
func (f sizeFlagInt) Type() string { return "size" }
func (f sizeFlagInt) String() string {
	if f.bytes == nil || *f.bytes == 0 {
		return ""
	}
	return units.ByteSize(*f.bytes).IEC()
}
func (f sizeFlagInt) exact() string { return units.ByteSize(*f.bytes).Exact() }

// peerFlags are how a native command reaches HOST.
type peerFlags struct {
	ipv4, ipv6 bool
	plain      bool // no extension
}

// addFlags adds the options; what a Plan holds goes into p.
func (o *peerFlags) addFlags(cmd *cobra.Command, p *plan.Plan) {
	f := cmd.Flags()
	f.IntVarP(&p.Port, "port", "p", plan.DefaultPort, "port of the server")
	f.StringVarP(&p.BindHost, "bind", "B", "", "local address")
	f.StringVar(&p.BindDev, "bind-dev", "", "local interface")
	f.BoolVarP(&o.ipv4, "ipv4", "4", false, "use IPv4 only")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "use IPv6 only")
	f.Var(durationFlag{&p.ConnectTimeout}, "connect-timeout", "give up connecting after this time")
	f.BoolVar(&p.Queue, "queue", false, "wait when the server is busy (fullbore servers)")
	f.BoolVar(&o.plain, "no-extension", false, "treat a fullbore server as a plain iperf3")
	cmd.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
}

// family is 4, 6 or, for either, 0.
func (o *peerFlags) family() int {
	switch {
	case o.ipv4:
		return 4
	case o.ipv6:
		return 6
	}
	return 0
}

// apply puts the rest into p.
func (o *peerFlags) apply(p *plan.Plan) {
	p.Family = o.family()
	if o.plain {
		p.Extension = "off"
	}
}
