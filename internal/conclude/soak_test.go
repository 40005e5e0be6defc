package conclude_test

import (
	"testing"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/conclude/sample"
	"github.com/fullbore-net/fullbore/result"
)

func TestSoakHost(t *testing.T) {
	t.Parallel()
	s := sample.SoakOfADay().Soak
	for _, c := range []struct{ got, want string }{
		{conclude.SoakHost(s.Machine), "31 % of a core, 1800 to 3600 MHz, 67 °C, slowed for heat 2 times, memory 31.0 MB to 32.0 MB"},
		{conclude.SoakHost(nil), ""},
		{conclude.SoakHost(&result.SoakMachine{LastMemory: s.Machine.LastMemory}), "memory 32.0 MB"},
		{conclude.SoakHourHost(&s.Hours[0]), "30 % of a core, 2400 MHz, 61 °C, 31.0 MB"},
		{conclude.SoakHourHost(&s.Hours[14]), "30 % of a core, 1800 MHz, 67 °C, slowed for heat 2 times, 31.0 MB"},
		{conclude.SoakHourHost(&result.SoakHour{}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
