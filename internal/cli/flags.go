package cli

import (
	"time"

	"github.com/fullbore-net/fullbore/internal/units"
)

// The option types: pflag values over the units package, so that every native
// command reads rates, sizes and durations in one spelling.

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
