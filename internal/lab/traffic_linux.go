package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trafficBurst bounds what a burst catches up with: so much may be sent at once after the
// machine let us wait.
const trafficBurst = 64

// trafficFlow is one Traffic while it runs.
type trafficFlow struct {
	Traffic
	from, to *net.UDPConn
	stats    TrafficStats
}

// startTraffic starts the scenario's competing flows, now, which is the client's start.
// stop ends them and says what they did.
func (s *Scenario) startTraffic(ctx context.Context, n *Network) (stop func() []TrafficStats, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var flows []*trafficFlow
	stop = func() []TrafficStats {
		cancel()
		all.Wait()
		var out []TrafficStats
		for _, f := range flows {
			out = append(out, f.stats)
		}
		return out
	}
	start := time.Now()
	for i, t := range s.Traffic {
		f, err := s.openTraffic(n, t, i)
		if err != nil {
			_ = stop()
			return nil, err
		}
		flows = append(flows, f)
		all.Go(func() { f.send(ctx, start) }) // ends with ctx
		all.Go(f.receive)                     // ends a while after it
	}
	return stop, nil
}

func (s *Scenario) openTraffic(n *Network, t Traffic, i int) (*trafficFlow, error) {
	f := &trafficFlow{Traffic: t}
	src, dst := n.Near, n.Far
	to := s.places()["SERVER"]
	if t.From == "server" {
		src, dst, to = n.Far, n.Near, s.places()["CLIENT"]
	}
	addr := &net.UDPAddr{IP: net.ParseIP(to), Port: TrafficPort + i}
	err := dst.Do(func() (err error) {
		f.to, err = net.ListenUDP("udp4", addr)
		return err
	})
	if err == nil {
		err = src.Do(func() (err error) {
			f.from, err = net.DialUDP("udp4", nil, addr)
			return err
		})
	}
	if err == nil {
		err = errors.Join(
			setOption(f.from, unix.SOL_IP, unix.IP_TOS, int(t.DSCP)<<2),
			setOption(f.to, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: competing traffic: %w", err)
	}
	return f, nil
}

func setOption(c syscall.Conn, level, name, value int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var errOpt error
	err = raw.Control(func(fd uintptr) { errOpt = unix.SetsockoptInt(int(fd), level, name, value) })
	return errors.Join(err, errOpt)
}

// headersUDP are IPv4's and UDP's.
const headersUDP = 28

// send sends at the flow's rate while it is on.
func (f *trafficFlow) send(ctx context.Context, start time.Time) {
	defer func() {
		<-ctx.Done()
		_ = f.from.Close()
		// What is underway counts if it comes before long.
		_ = f.to.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	}()
	buf := make([]byte, f.Size-headersUDP)
	next := f.At
	on := func() bool { return f.For == 0 || next < f.At+f.For }
	for on() {
		if wait := time.Until(start.Add(next)); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		for burst := 0; burst < trafficBurst && on() && time.Since(start) >= next && ctx.Err() == nil; burst++ {
			// An answer of ICMP's, or a full device, is the flow's own business.
			if n, err := f.from.Write(buf); err == nil {
				f.stats.Sent.Packets++
				f.stats.Sent.Bytes += int64(n + headersUDP)
			}
			next = f.after(next)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (f *trafficFlow) receive() {
	defer f.to.Close()
	buf := make([]byte, f.Size)
	for {
		n, err := f.to.Read(buf)
		if err != nil {
			return
		}
		f.stats.Received.Packets++
		f.stats.Received.Bytes += int64(n + headersUDP)
	}
}
