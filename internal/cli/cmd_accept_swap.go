package cli

import (
	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/suite"
)

// exchangeOptions are the words about client and server exchanged at the end of an acceptance.
type exchangeOptions struct {
	noSwap   bool
	swapPort int
}

func (o *exchangeOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.noSwap, "no-swap", false, "do not measure once more with client and server exchanged")
	f.IntVar(&o.swapPort, "swap-port", 0, "port of this host that HOST can reach for that (default: any free one)")
}

func (o *exchangeOptions) check() error {
	if p := o.swapPort; p != 0 && (p < plan.MinSwapPort || p > 65535) {
		return usagef("--swap-port %d: must be %d…65535", p, plan.MinSwapPort)
	}
	return nil
}

// exchange is what the method is told; nil = the roles are not exchanged: nobody wants it, the other
// end's document says it already, or both ends are this machine.
func (o *acceptOptions) exchange(host string) *suite.Exchange {
	if o.noSwap || o.swapped != "" || host == "self" {
		return nil
	}
	return &suite.Exchange{Port: o.swapPort}
}
