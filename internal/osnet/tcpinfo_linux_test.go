package osnet

import (
	"encoding/binary"
	"io"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The offsets written by hand are those of the kernel's structure.
func TestLinuxOffsets(t *testing.T) {
	var k unix.TCPInfo
	for _, o := range []struct {
		name string
		got  int
		want uintptr
	}{
		{"options", 5, unsafe.Offsetof(k.Options)},
		{"snd_mss", 16, unsafe.Offsetof(k.Snd_mss)},
		{"unacked", 24, unsafe.Offsetof(k.Unacked)},
		{"lost", 32, unsafe.Offsetof(k.Lost)},
		{"pmtu", 60, unsafe.Offsetof(k.Pmtu)},
		{"rtt", 68, unsafe.Offsetof(k.Rtt)},
		{"rttvar", 72, unsafe.Offsetof(k.Rttvar)},
		{"ssthresh", 76, unsafe.Offsetof(k.Snd_ssthresh)},
		{"cwnd", 80, unsafe.Offsetof(k.Snd_cwnd)},
		{"reordering", 88, unsafe.Offsetof(k.Reordering)},
		{"rcv_space", 96, unsafe.Offsetof(k.Rcv_space)},
		{"total_retrans", minInfo - 4, unsafe.Offsetof(k.Total_retrans)},
		{"pacing_rate", 104, unsafe.Offsetof(k.Pacing_rate)},
		{"bytes_acked", 120, unsafe.Offsetof(k.Bytes_acked)},
		{"bytes_received", 128, unsafe.Offsetof(k.Bytes_received)},
		{"segs_out", 136, unsafe.Offsetof(k.Segs_out)},
		{"segs_in", 140, unsafe.Offsetof(k.Segs_in)},
		{"notsent", 144, unsafe.Offsetof(k.Notsent_bytes)},
		{"min_rtt", 148, unsafe.Offsetof(k.Min_rtt)},
		{"delivery_rate", 160, unsafe.Offsetof(k.Delivery_rate)},
		{"busy", 168, unsafe.Offsetof(k.Busy_time)},
		{"rwnd_limited", 176, unsafe.Offsetof(k.Rwnd_limited)},
		{"sndbuf_limited", 184, unsafe.Offsetof(k.Sndbuf_limited)},
		{"delivered_ce", 196, unsafe.Offsetof(k.Delivered_ce)},
		{"bytes_sent", 200, unsafe.Offsetof(k.Bytes_sent)},
		{"bytes_retrans", 208, unsafe.Offsetof(k.Bytes_retrans)},
		{"dsack_dups", 216, unsafe.Offsetof(k.Dsack_dups)},
		{"reord_seen", 220, unsafe.Offsetof(k.Reord_seen)},
		{"snd_wnd", 228, unsafe.Offsetof(k.Snd_wnd)},
		{"end", linuxInfoSize, unsafe.Offsetof(k.Rcv_wnd)},
	} {
		if uintptr(o.got) != o.want {
			t.Errorf("%s: offset %d, the structure has %d", o.name, o.got, o.want)
		}
	}
}

// A live connection, whose byte counts are known.
func TestTCPInfoLive(t *testing.T) {
	ln := mustListen(t, "127.0.0.1:0", Options{})
	c, s := pair(t, ln, "127.0.0.1", Options{MSS: 1200, Congestion: "reno"}, Options{})
	payload := make([]byte, 300_000)
	errc := make(chan error, 1)
	go func() {
		_, err := c.Net().Write(make([]byte, len(payload)))
		errc <- err
	}()
	if _, err := io.ReadFull(s.Net(), payload); err != nil {
		t.Fatal(err)
	}
	if err := <-errc; err != nil {
		t.Fatal(err)
	}
	ci, err := c.TCPInfo()
	if err != nil {
		t.Fatal(err)
	}
	si, err := s.TCPInfo()
	if err != nil {
		t.Fatal(err)
	}
	if !ci.Timestamps || !ci.SACK {
		t.Errorf("options: %+v", ci)
	}
	if ci.WScale[0] != si.WScale[1] || ci.WScale[1] != si.WScale[0] {
		t.Errorf("scales %v and %v are not each other's mirror", ci.WScale, si.WScale)
	}
	if ci.MSS == 0 || ci.MSS > 1200 || ci.Cwnd < ci.MSS || ci.PMTU == 0 || ci.RTT == 0 || ci.SegsOut < 250 {
		t.Errorf("sender: %+v", ci)
	}
	if Capabilities().TCPInfoBytes < linuxInfoSize {
		return // an older kernel; the fields below are its nils
	}
	if *ci.BytesSent < 300_000 || *si.BytesReceived < 300_000 || *si.BytesReceived > 300_001 {
		t.Errorf("sent %d, received %d; want 300000 (and the handshake's one)", *ci.BytesSent, *si.BytesReceived)
	}
	if *ci.SndWnd == 0 || *ci.MinRTT == 0 || *ci.DeliveryRate == 0 {
		t.Errorf("sender's window %d, minimum %d, delivery rate %d", *ci.SndWnd, *ci.MinRTT, *ci.DeliveryRate)
	}
	// The low-level reading agrees with the library's.
	err = c.control(func(fd uintptr) error {
		k, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		var raw [linuxInfoSize]byte
		if _, err := readTCPInfo(fd, raw[:]); err != nil {
			return err
		}
		if got := binary.NativeEndian.Uint32(raw[100:]); got != k.Total_retrans || int64(k.Snd_mss) != ci.MSS {
			t.Errorf("retransmits %d and MSS %d, the library says %d and %d", got, ci.MSS, k.Total_retrans, k.Snd_mss)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkTCPInfo(b *testing.B) {
	ln, err := Listen(b.Context(), "tcp", loopback(0), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	c, _, err := Dial(b.Context(), "tcp", loopback(portOf(ln)), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"net.Conn", "detached"} {
		if name == "detached" {
			if _, err := c.Detach(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.TCPInfo(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
