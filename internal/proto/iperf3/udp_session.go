package iperf3

import (
	"context"
	"fmt"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// The UDP half of a server's session and what both ends' runs share.

// planDatagrams fits the plan of a UDP test to what the engine can do.
func (t *session) planDatagrams() {
	p := &t.plan
	if p.Transport != plan.UDP {
		return
	}
	if p.BlockSize > plan.MaxUDPBlock { // no len came: no known client leaves it out (spec §6)
		p.BlockSize = plan.MaxUDPBlock
	}
	p.Send, p.Receive = plan.SendCopy, plan.Copy // ways of TCP
	if p.GSRO {
		p.Offload = plan.OffloadOn
	}
	if t.hello.Has(ext.FeatureUDP) {
		p.Counters64 = true
		if o := t.hello.Offload; o == plan.OffloadOn || o == plan.OffloadOff {
			p.Offload = o
		}
		if o := t.hello.Pacing; o == plan.PacingFrugal || o == plan.PacingPrecise {
			p.Pacing = o
		}
		p.Steady = t.hello.Steady
		if p.Steady {
			p.CatchUp = min(max(t.hello.CatchUp, 0), plan.MaxCatchUp)
		}
	}
}

// collectDatagrams waits until every UDP stream is there.
func (t *session) collectDatagrams(ctx context.Context) error {
	u := t.udp
	keep := false
	defer func() {
		if !keep {
			u.abandon()
		}
	}()
	timer := time.NewTimer(t.s.to.Stream)
	defer timer.Stop()
	seen := 0
	for {
		streams, n := u.complete()
		if streams != nil {
			keep = true
			u.untend()
			dirs := directions(t.plan.Direction, t.plan.Streams)
			for i, s := range streams {
				t.streams = append(t.streams, stream{conn: s.conn, dir: dirs[i], id: streamID(i)})
				t.notices = append(t.notices, s.notices...)
			}
			return nil
		}
		if n > seen {
			seen = n
			timer.Reset(t.s.to.Stream)
		}
		select {
		case <-u.wake:
		case in, ok := <-t.ctl.in:
			if err := t.early(in, ok); err != nil {
				return err
			}
		case e := <-t.failed:
			return e
		case <-timer.C:
			return &result.Error{
				Code: "no-streams", Remote: true, Number: codeStreamAccept, Errno: linuxETIMEDOUT,
				Text: fmt.Sprintf("%d of %d UDP streams came, then none for %v: does a firewall let UDP to port %d?", n, t.wanted(), t.s.to.Stream, t.local.Port),
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// udpConfig is what the engine is told about UDP.
func (t *session) udpConfig() traffic.UDPConfig {
	if t.plan.Transport != plan.UDP {
		return traffic.UDPConfig{}
	}
	return traffic.UDPConfig{
		Wide: t.plan.Counters64, Nonce: nonceOf(t.hello.Has(ext.FeatureUDP), t.nonce, t.plan.BlockSize),
		Pacing: t.plan.Pacing, Steady: t.plan.Steady, CatchUp: t.plan.CatchUp, Offload: t.plan.Offload, Drain: t.drainTime(), Window: t.plan.Window,
		Iperf3: t.s.Plain,
	}
}

// watchPeer makes the system find out that the other end is gone: a UDP sender gets no
// acknowledgement that could fail to come, and says nothing on its control connection.
// That of a plain peer stays as the user wants it where they said so.
func watchPeer(c *osnet.Conn, p plan.Plan, sends bool, k *plan.Keepalive) {
	if p.Transport != plan.UDP || !sends || k != nil {
		return
	}
	within := plan.Keepalive{Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6} // 45 s
	// A refusal leaves the test's own time limits.
	_, _ = osnet.Apply(c, osnet.Options{NoDelay: true, UserTimeout: p.SendTimeout, Keepalive: &within})
}

// drainTime is four round trips of the control connection, 0 where the system does not
// tell them: how long a silence must be for nothing more to be on its way.
func (t *session) drainTime() time.Duration { return roundTrips(t.conn, 4) }

func roundTrips(c *osnet.Conn, n int) time.Duration {
	info, err := c.TCPInfo()
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Duration(info.RTT) * time.Microsecond
}

// acknowledged are the senders whose peer acknowledges: TCP's.
func (t *session) acknowledged() []*osnet.Conn {
	if t.plan.Transport == plan.UDP {
		return nil
	}
	return t.senders
}

// udpConfig is what the engine is told about UDP.
func (r *clientRun) udpConfig() traffic.UDPConfig {
	if r.p.Transport != plan.UDP {
		return traffic.UDPConfig{}
	}
	offload := r.p.Offload
	if r.p.GSRO && offload == plan.OffloadAuto {
		offload = plan.OffloadOn
	}
	return traffic.UDPConfig{
		Wide: r.wideCounters(), Nonce: r.nonce(), Pacing: r.p.Pacing, Steady: r.p.Steady, CatchUp: r.p.CatchUp, Offload: offload,
		Drain: roundTrips(r.conn, 4), Window: r.p.Window, Iperf3: r.c.Plain,
	}
}

// acknowledged are the senders whose peer acknowledges: TCP's.
func (r *clientRun) acknowledged() []*osnet.Conn {
	if r.p.Transport == plan.UDP {
		return nil
	}
	return r.senders
}

// settleDatagrams gives an iperf3 server a moment to read what its kernel holds: it stops
// reading at TEST_END. A fullbore counts on by itself.
func (r *clientRun) settleDatagrams() {
	if r.p.Transport == plan.UDP && r.hello == nil && r.p.Sends(result.Client) {
		time.Sleep(settle)
	}
}

// countEarly counts the datagrams that came before the engine had their streams.
func (r *clientRun) countEarly(t *traffic.Totals) {
	for i, n := range r.early {
		if n == 0 || i >= len(t.Flows) || t.Flows[i].UDP == nil || t.Flows[i].UDP.Received == nil {
			continue
		}
		f := &t.Flows[i]
		if r.p.Omit > 0 { // it belongs to what is left out
			if f.Total.OmittedLost != nil && f.Total.Lost != nil {
				n = min(n, *f.Total.OmittedLost)
				*f.Total.OmittedLost -= n
				*f.Total.Lost -= n
			}
			continue
		}
		rec := *f.UDP.Received
		rec.Packets += n
		rec.Bytes += n * int64(r.p.BlockSize)
		rec.Highest = max(rec.Highest, rec.Packets)
		if f.Total.Lost != nil {
			*f.Total.Lost -= min(n, *f.Total.Lost)
			if *f.Total.Lost == 0 {
				rec.Periods = nil
			}
		}
		f.UDP = &result.UDPStream{Sent: f.UDP.Sent, Received: &rec}
	}
}
