package runner

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// hostView is what this host can say about itself during one test.
type hostView struct {
	facts   *result.Host
	missing []string // what cannot be counted, with the reason
	sampler *oshost.Sampler
}

// newHostView looks at the host with the interface that leads to host (a name or an
// address; unknown = the default route).
func newHostView(ctx context.Context, host string, family int) *hostView {
	var peer netip.Addr
	if addrs, err := osnet.Resolve(ctx, host, family); err == nil && len(addrs) > 0 {
		peer = addrs[0]
	}
	return hostViewTo(ctx, peer)
}

func hostViewTo(ctx context.Context, peer netip.Addr) *hostView {
	v := &hostView{facts: oshost.Facts(ctx, peer)}
	name, err := oshost.InterfaceTo(peer)
	if err != nil {
		name = ""
		v.missing = append(v.missing, fmt.Sprintf("counters of the interface: %v", err))
	}
	v.sampler = oshost.NewSampler(oshost.SamplerOptions{Interface: name})
	return v
}

// notices say which counters of this host the run could not have.
func (v *hostView) notices(end result.End) []result.Notice {
	var out []result.Notice
	for _, text := range append(v.missing, v.sampler.Missing()...) {
		out = append(out, result.Notice{
			Code: "counter-missing", End: end, Level: result.Info,
			Text: "not counted on this host: " + text,
		})
	}
	return out
}

func (v *hostView) sample() *result.HostSample { return v.sampler.Sample() }

func (v *hostView) close() { v.sampler.Close() }

// facts are those of this host as seen from its default route, with this program's name.
func (r *Runner) facts(ctx context.Context) *result.Host {
	h := oshost.Facts(ctx, netip.Addr{})
	tool := r.tool()
	h.Tool = &tool
	return h
}

// factsTo are those of this host in full, as seen along the route to a client.
func (r *Runner) factsTo(ctx context.Context) func(netip.Addr) *result.Host {
	return func(client netip.Addr) *result.Host {
		h := oshost.FactsInFull(ctx, client)
		tool := r.tool()
		h.Tool = &tool
		return h
	}
}
