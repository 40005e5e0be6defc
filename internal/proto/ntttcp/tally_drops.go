package ntttcp

import (
	"github.com/fullbore-net/fullbore/result"
)

// dropper is a socket that knows how many datagrams it had no room for (SO_MEMINFO).
type dropper interface{ SocketDrops() (int64, error) }

// socketDrops are the drops of a receiver's sockets since a test began.
type socketDrops struct {
	sockets []dropper
	base    []int64 // −1 = unknown
}

// watch begins to count what sockets drop; a stream's port is an index there.
func (t *tally) watch(sockets []dropper) {
	d := socketDrops{sockets: sockets, base: make([]int64, len(sockets))}
	for i, s := range sockets {
		n, err := s.SocketDrops()
		if err != nil {
			n = -1
		}
		d.base[i] = n
	}
	t.mu.Lock()
	t.drops = d
	t.mu.Unlock()
}

// since is by how much the count of a socket has grown; false = nobody knows. The system's has 32
// bits.
func (d *socketDrops) since(port int) (int64, bool) {
	if port < 0 || port >= len(d.sockets) || d.base[port] < 0 {
		return 0, false
	}
	n, err := d.sockets[port].SocketDrops()
	if err != nil { // it is closed already
		return 0, false
	}
	return int64(uint32(n - d.base[port])), true
}

// account is what the receiver knows of each stream beyond its bytes: what came in all, and what its
// socket dropped, unless alone is false: then others had their part in that. Streams of one socket
// share its drops as they do what they lost, nil = as they do what came.
func (t *tally) account(lost []int64, alone bool) []*result.UDPReceived {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*result.UDPReceived, len(t.list))
	ports := map[int][]int{}
	weights := make([]int64, len(t.list))
	for i, s := range t.list {
		tail := s.tail.Load()
		out[i] = &result.UDPReceived{
			Packets: s.packets.Load() + tail, Bytes: s.bytes.Load(), Tail: tail, Coalesced: t.way.Load() >= viaJoined,
		}
		ports[s.port] = append(ports[s.port], i)
		weights[i] = out[i].Packets
		if i < len(lost) {
			weights[i] = lost[i]
		}
	}
	if !alone {
		return out
	}
	for port, of := range ports {
		n, ok := t.drops.since(port)
		if !ok {
			continue
		}
		for i, share := range shares(n, of, weights) {
			out[i].SocketDrops = &share
		}
	}
	return out
}

// shares divides n among the streams of, by their weights; the first gets what is left of rounding.
func shares(n int64, of []int, weights []int64) map[int]int64 {
	var all int64
	for _, i := range of {
		all += max(0, weights[i])
	}
	out := make(map[int]int64, len(of))
	left := n
	for _, i := range of {
		out[i] = 0
		if all > 0 {
			out[i] = int64(float64(n) * float64(max(0, weights[i])) / float64(all))
		}
		left -= out[i]
	}
	out[of[0]] += left
	return out
}
