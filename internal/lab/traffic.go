package lab

import (
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/lab/link"
	"github.com/fullbore-net/fullbore/internal/lab/truth"
)

// Traffic is a flow of UDP datagrams that competes with the client's: real ones, from one
// host to the other. The traffic that a path has of itself (link.Cross) is nobody's here.
type Traffic struct {
	From          string // "client" or "server"
	BitsPerSecond int64  // while it is on, on whole IP packets
	Size          int    // of each packet, bytes
	DSCP          uint8
	At, For       time.Duration // from the client's start; For 0: until it ends
	On, Off       time.Duration // alternate, beginning with On; 0 means always on
}

// TrafficPort is where competing traffic goes: the port of "discard" (RFC 863), and those
// above it, one for each flow.
const TrafficPort = 9

// TrafficStats are what a Traffic did, IP packets.
type TrafficStats struct {
	Sent     link.Count `json:"sent"`
	Received link.Count `json:"received"`
}

// setApart takes the competing flows out of the link's truth about datagrams, which is
// about the client's and the server's.
func (s *Scenario) setApart(r *LinkReport) {
	for i := range r.Directions {
		d := &r.Directions[i]
		d.Datagrams = slices.DeleteFunc(d.Datagrams, func(f truth.Datagrams) bool {
			port := int(f.Dst.Port()) - TrafficPort
			return port >= 0 && port < len(s.Traffic)
		})
	}
}

// after returns the time of the packet after the one at t, from the client's start.
func (f *Traffic) after(t time.Duration) time.Duration {
	t += time.Duration(int64(f.Size) * 8 * int64(time.Second) / f.BitsPerSecond)
	if f.On == 0 {
		return t
	}
	if cycle := f.On + f.Off; (t-f.At)%cycle >= f.On {
		t += cycle - (t-f.At)%cycle
	}
	return t
}

// maxTraffic bounds the lab's own part in the load.
const maxTraffic = 1_000_000_000

func (s *Scenario) readTraffic(r *reader) handler {
	return func(n ast.Node, at string) {
		f := Traffic{Size: 1200}
		r.Mapping(n, at, map[string]handler{
			"from": r.oneOf(&f.From, "client", "server"),
			"rate": r.rate(&f.BitsPerSecond),
			"size": r.integer(&f.Size, 28, 9000),
			"dscp": parsed(r, &f.DSCP, ParseDSCP),
			"at":   r.duration(&f.At, 0, maxTimeout),
			"for":  r.duration(&f.For, time.Millisecond, maxTimeout),
			"on":   r.duration(&f.On, time.Millisecond, maxTimeout),
			"off":  r.duration(&f.Off, time.Millisecond, maxTimeout),
		})
		r.require(n, at, "from", "rate")
		if f.BitsPerSecond > maxTraffic {
			r.Fail(n, at+".rate", "is more than the lab itself can send: %d bit/s", int64(maxTraffic))
		}
		if r.Given(at+".on") != r.Given(at+".off") {
			r.Fail(n, at, "on and off need each other")
		}
		s.Traffic = append(s.Traffic, f)
	}
}
