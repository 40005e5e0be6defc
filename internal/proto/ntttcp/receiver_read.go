package ntttcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

const (
	// udpRoom is the receive buffer of a UDP port: what a sender without limits sends while
	// nobody reads.
	udpRoom = 8 << 20
	// udpBatch is how many messages one call takes.
	udpBatch = 8
	// largestDatagram is more than UDP carries.
	largestDatagram = 65535
)

// source is whom a datagram's sender sends for.
type source struct {
	tally *tally
	local result.Addr // that it sends to
}

// read hands the datagrams of one port to their tests. It ends when the socket is closed.
func (r *Receiver) read(ctx context.Context, pc *osnet.PacketConn, port int) {
	if r.c.Window == 0 { // a size that was asked for is on the socket already
		if _, err := pc.GrowReceive(udpRoom); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			r.log.Warn("receive buffer", "port", pc.LocalAddr().Port(), "err", err)
		}
	}
	in, err := osnet.NewPacketReceiver(pc, largestDatagram, udpBatch)
	if err != nil {
		r.log.Error("receive datagrams", "port", pc.LocalAddr().Port(), "err", err)
		return
	}
	known := map[netip.AddrPort]source{} // so that the common lock is taken once per sender
	var rest time.Time                   // when the port counts as idle
	for {
		n, err := in.Receive()
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded): // most ports are idle most of the time
			in.Release()
			clear(known)
			rest = time.Time{}
			_ = pc.SetReadDeadline(rest)
			continue
		default:
			continue // an ICMP error of somebody else's datagram
		}
		if now := time.Now(); rest.Sub(now) < udpIdle/2 {
			rest = now.Add(udpIdle)
			_ = pc.SetReadDeadline(rest)
		}
		for i := 0; i < n; {
			i = r.count(ctx, pc, port, in, i, n, known)
		}
	}
}

// count counts datagram i of n and those after it that are like it, and returns the next.
func (r *Receiver) count(ctx context.Context, pc *osnet.PacketConn, port int, in *osnet.PacketReceiver, i, n int, known map[netip.AddrPort]source) int {
	data, from, _ := in.Message(i)
	size := len(data)
	s := known[from]
	if s.tally == nil || !s.tally.wants() {
		if len(known) >= maxVisitors {
			clear(known)
		}
		s.local = result.Addr{Port: int(pc.LocalAddr().Port())}
		if to, _ := in.Local(i); to.IsValid() {
			s.local.Host = to.Unmap().String()
		}
		if s.tally = r.tallyOf(ctx, datagramFlow{port, from}, s.local, size); s.tally == nil {
			return i + 1
		}
		known[from] = s
	}
	if r.c.Message != "" {
		s.tally.addRun(datagramFlow{port, from}, s.local, size, 1)
		r.verify(s.tally, datagramFlow{port, from}, data)
		r.datagram(pc, datagramFlow{port, from}, s, data)
		return i + 1
	}
	times, first := 1, i
	for i++; i < n; i++ {
		if more, its, _ := in.Message(i); len(more) != size || its != from {
			break
		}
		times++
	}
	s.tally.addRun(datagramFlow{port, from}, s.local, size, times)
	for ; r.c.Verify && first < i; first++ {
		data, _, _ = in.Message(first)
		r.verify(s.tally, datagramFlow{port, from}, data)
	}
	s.tally.through(in)
	return i
}
