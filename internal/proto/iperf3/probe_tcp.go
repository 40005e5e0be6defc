package iperf3

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/probe"
	"github.com/fullbore-net/fullbore/result"
)

// pingWork is round trips over TCP: first how long connecting takes, then requests and
// answers on one connection.
type pingWork struct {
	r     *clientRun
	trips *probe.Trips
}

func (w *pingWork) run(ctx context.Context) error {
	r := w.r
	for range r.p.Streams {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.connectOnce(ctx); err != nil {
			return err
		}
	}
	pr := r.p.Probe
	r.reportProbes(r.connects.Result(pr.Profile)) // so that it comes before the round trips
	trips, err := probe.NewTrips(probe.TripConfig{
		Profile: pr.Profile, Size: pr.Size, Duration: r.p.Duration, Most: r.p.MaxBytes, Now: osnet.Monotonic, Patience: r.to.Answer, Report: r.reportProbes,
	})
	if err != nil {
		return &result.Error{Code: "plan", Text: err.Error()}
	}
	w.trips = trips
	conn, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is lost with it
	return trips.Run(ctx, conn.Net())
}

// dial opens a connection for round trips and says what it is.
func (w *pingWork) dial(ctx context.Context) (*osnet.Conn, error) {
	r := w.r
	began := time.Now()
	o := r.streamOptions(0)
	o.NoDelay, o.LocalPort = true, 0 // one port cannot serve one connection after the other
	conn, notices, err := osnet.Dial(ctx, "tcp", r.addr, o)
	if err != nil {
		return nil, optionError(err)
	}
	r.noteConnect(began)
	r.out.notices(notices)
	_ = conn.Net().SetDeadline(time.Now().Add(r.to.Answer))
	greeting := binary.BigEndian.AppendUint32(append([]byte{}, r.cookie[:]...), PingIndex)
	if _, err := conn.Net().Write(greeting); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("send cookie: %w", err)
	}
	return conn, nil
}

// connectOnce opens a connection and closes it in good order.
func (w *pingWork) connectOnce(ctx context.Context) error {
	conn, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is lost with it
	if _, err := conn.Net().Write(make([]byte, 4)); err != nil {
		return fmt.Errorf("send size: %w", err)
	}
	if h, ok := conn.Net().(interface{ CloseWrite() error }); ok {
		if err := h.CloseWrite(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	_, err = io.CopyN(io.Discard, conn.Net(), 1) // its end
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func (w *pingWork) figures(*probe.Counts) ([]*result.Probes, []result.Notice) {
	var out []*result.Probes
	if c := w.r.connects; c != nil {
		out = append(out, c.Result(w.r.p.Probe.Profile))
	}
	if w.trips == nil {
		return out, nil
	}
	return append(out, w.trips.Result()), w.trips.Notices()
}

func (w *pingWork) close() {}

// probesOfPlain is what a plain test in place of probes tells; nil = nothing.
func (r *clientRun) probesOfPlain(streams []result.Stream) *result.Probes {
	if !r.wantsOnlyProbes() {
		return nil
	}
	var out *result.Probes
	if r.p.Transport == plan.UDP {
		out = &result.Probes{Kind: "udp-test", Profile: profileName(r.p.Probe), Spacing: r.p.Probe.Spacing.Seconds(), Size: r.p.BlockSize}
		for i := range streams {
			addPlain(out, &streams[i])
		}
	} else if r.connects != nil {
		out = r.connects.Result(r.p.Probe.Profile)
	}
	if out == nil || r.conn == nil {
		return out
	}
	if info, err := r.conn.TCPInfo(); err == nil {
		out.TCPRTT = micros(info.RTT)
		if info.MinRTT != nil {
			out.TCPMinRTT = micros(*info.MinRTT)
		}
	}
	return out
}

func micros(us int64) *float64 {
	if us <= 0 {
		return nil
	}
	s := float64(us) / 1e6
	return &s
}

// addPlain takes what is known of a stream of datagrams. Nothing comes back in such a
// test, so none is answered.
func addPlain(out *result.Probes, s *result.Stream) {
	if s.Sender != nil && s.Sender.Packets != nil {
		out.Sent += *s.Sender.Packets
	}
	lost := &out.LostUp
	if s.Direction == result.Down {
		lost = &out.LostDown
	}
	switch {
	case s.UDP != nil && s.UDP.Loss != nil:
		n := s.UDP.Loss.Lost
		*lost = &n
	case s.Receiver != nil && s.Receiver.Lost != nil:
		n := *s.Receiver.Lost
		*lost = &n
	}
	if s.UDP == nil || s.UDP.Received == nil {
		return
	}
	got := s.UDP.Received
	way := &result.OneWay{PDV: got.PDV, IPDV: got.IPDV, Jitter: got.Jitter}
	out.Stamps = got.Stamps
	if s.Direction == result.Up {
		out.Up = way
	} else {
		out.Down = way
	}
}
