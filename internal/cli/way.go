package cli

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// hopsWait is how long the stations of the way may take to answer. It passes while the measurement goes on.
const hopsWait = time.Second

// wayLook is the looking for the stations to one host, in the background.
type wayLook struct {
	done chan struct{} // closed when hops is final
	hops []result.Hop  // nil = not known
}

// look begins to look for the way to host, where its runs will be kept. It returns at once; what is looked
// for ends by itself within some seconds.
func (o *keepOptions) look(ctx context.Context, e *env, host string, family int) {
	if host == "" || host == "self" || o.ways[host] != nil {
		return
	}
	if _, err := e.historyPath(); (o.noStore || err != nil) && o.out == "" && !o.always { // nobody keeps what is found
		return
	}
	w := &wayLook{done: make(chan struct{})}
	if o.ways == nil {
		o.ways = map[string]*wayLook{}
	}
	o.ways[host] = w
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	go func() { // ends with the timeout above at the latest
		defer cancel()
		defer close(w.done)
		w.hops = findHops(ctx, host, family)
	}()
}

// findHops is the way to host, nil when it is not known or there is none.
func findHops(ctx context.Context, host string, family int) []result.Hop {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		addrs, err := osnet.Resolve(ctx, host, family)
		if err != nil || len(addrs) == 0 {
			return nil
		}
		addr = addrs[0]
	}
	if addr.IsLoopback() {
		return nil
	}
	found, err := osnet.Hops(ctx, addr, hopsWait)
	if err != nil {
		return nil
	}
	var out []result.Hop
	for _, h := range found {
		one := result.Hop{TTL: h.TTL}
		if h.Addr.IsValid() {
			one.Addr = h.Addr.String()
		}
		out = append(out, one)
	}
	return out
}

// way is what was found of the way to host; it waits for so long where that is not over.
func (o *keepOptions) way(host string, wait time.Duration) []result.Hop {
	w := o.ways[host]
	if w == nil {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-w.done:
		return w.hops
	case <-t.C:
		return nil
	}
}
