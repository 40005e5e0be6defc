package iperf3

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// mtuWork finds the path MTU of each direction (M-PMTU).
type mtuWork struct {
	r        *clientRun
	p        *probe.MTUProber
	overhead int
	link     int // MTU of this host's interface; 0 = not known
	reached  bool
	both     bool // the server sends packets of its own
	found    []result.PathMTU
}

// overheadOf is what IP and UDP add to a datagram.
func overheadOf(v6 bool) int {
	if v6 {
		return 48
	}
	return 28
}

// largestPacket is the longest IP packet that can be tried: UDP's length and IPv4's hold no more.
const largestPacket = 65535

func (r *clientRun) newMTU(ctx context.Context) (*mtuWork, error) {
	var id probe.ID
	var nonce probe.Nonce
	if n, err := hex.Decode(id[:], []byte(r.hello.Test)); err != nil || n != len(id) {
		return nil, r.badHello("test id")
	}
	if n, err := hex.Decode(nonce[:], []byte(r.hello.Nonce)); err != nil || n != len(nonce) {
		return nil, r.badHello("nonce")
	}
	o := r.streamOptions(0)
	o.LocalPort, o.Window, o.FQRate, o.DontFragment = 0, 0, 0, false
	w := &mtuWork{r: r, overhead: overheadOf(r.addr.Addr().Unmap().Is6()), both: r.hello.Has(ext.FeatureMTU)}
	_, link, err := osnet.MTUTowards(ctx, r.addr, o)
	if err == nil {
		w.link = link
	}
	conn, notices, err := osnet.Dial(ctx, "udp", r.addr, o)
	r.out.notices(notices)
	if err != nil {
		return nil, optionError(err)
	}
	if err := conn.SetMTUProbing(); err != nil {
		_ = conn.Close()
		return nil, optionError(err)
	}
	pc, err := newProbeConn(conn)
	if err != nil {
		_ = conn.Close()
		return nil, optionError(err)
	}
	w.p = probe.NewMTUProber(probe.MTUConfig{
		Conn: pc, Test: id, Nonce: nonce, Overhead: w.overhead, Now: osnet.Monotonic, Most: r.p.MaxBytes, Told: func() int {
			n, err := conn.PathMTU()
			if err != nil || link == 0 || n >= link {
				return 0
			}
			return n
		},
	})
	return w, nil
}

// search is the method for this path.
func (w *mtuWork) search(asking bool) method.PathMTU {
	upper := largestPacket
	if w.link > 0 {
		upper = min(upper, w.link)
	}
	return method.PathMTU{Least: probe.HeaderSize + w.overhead, Upper: upper, Sure: true, Asking: asking}
}

func (w *mtuWork) run(ctx context.Context) error {
	if d := w.r.p.Duration; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errMTUTime)
		defer cancel()
	}
	err := w.ways(ctx)
	if errors.Is(err, errMTUTime) {
		w.r.out.notice(result.Notice{
			Code: "mtu-unfinished", End: result.Client, Level: result.Warn,
			Text: "the search for the path MTU took longer than its time: the bounds so far are told",
		})
		return nil
	}
	return err
}

var errMTUTime = errors.New("the search took too long")

// ways plays up, then down.
func (w *mtuWork) ways(ctx context.Context) (err error) {
	if w.reached, err = w.p.Reach(ctx); err != nil || !w.reached {
		return err
	}
	for _, down := range []bool{false, true} {
		if down && !w.both {
			w.r.out.notice(result.Notice{
				Code: "mtu-one-way", End: result.Server, Level: result.Warn,
				Text: "the other end is an older fullbore that sends no packets of its own: the path MTU down is not known",
			})
			break
		}
		s := w.search(down)
		history, err := w.p.Search(ctx, s, down)
		found := s.Answer(history)
		found.Direction, found.Method = result.Up, "probe"
		if down {
			found.Direction, found.Told = result.Down, nil
		} else if w.link > 0 {
			found.Link = &w.link
		}
		w.found = append(w.found, found)
		if err != nil {
			return err
		}
	}
	return nil
}

// figures are the final ones; of the way down the server says what its system was told.
func (w *mtuWork) figures(remote *probe.Counts) ([]*result.Probes, []result.Notice) {
	sent, answered := w.p.Counts()
	out := &result.Probes{Kind: "udp-mtu", Profile: "mtu", Size: probe.HeaderSize, Sent: sent, Answered: answered, MTU: w.found}
	for i := range w.found {
		f := &w.found[i]
		if f.Direction != result.Down || remote == nil || f.MTU == nil {
			continue
		}
		hole := false
		if remote.LinkMTU > 0 {
			link := remote.LinkMTU
			f.Link = &link
		}
		if remote.PathMTU > 0 && remote.LinkMTU > 0 {
			if told := remote.PathMTU; told < remote.LinkMTU {
				f.Told = &told
			}
			hole = f.Told == nil && !f.AtLink
			f.BlackHole = &hole
		}
	}
	return []*result.Probes{out}, w.p.Notices()
}

func (w *mtuWork) close() { w.p.Close() }

var _ probeWork = (*mtuWork)(nil)
