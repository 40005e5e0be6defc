package suite_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/result"
)

// seen is a capture of raw IPv4 packets of UDP, from 192.0.2.1:1000 to 192.0.2.2:5201.
func seen(packets, payload int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, 65535)
	b = binary.LittleEndian.AppendUint32(b, 101)
	for range packets {
		p := []byte{0x45, 0}
		p = binary.BigEndian.AppendUint16(p, uint16(28+payload))
		p = append(p, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
		p = binary.BigEndian.AppendUint16(p, 1000)
		p = binary.BigEndian.AppendUint16(p, 5201)
		p = binary.BigEndian.AppendUint16(p, uint16(8+payload))
		p = append(p, 0, 0)
		b = append(b, make([]byte, 8)...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)+payload))
		b = append(b, p...)
	}
	return b
}

// A third point's bytes lie between those sent and those received, or something is wrong.
func TestThirdPoint(t *testing.T) {
	rep := func() *result.Report {
		run := &result.Run{
			End: result.Client, Label: "A4-up-1", Test: result.Test{Transport: "udp", BlockSize: 1000},
			Streams: []result.Stream{{Direction: result.Up, Local: result.Addr{Host: "192.0.2.1", Port: 1000}, Remote: result.Addr{Host: "192.0.2.2", Port: 5201}}},
			Sums:    []result.Sum{{Direction: result.Up, Sender: &result.Total{Bytes: 200e3, End: 1}, Receiver: &result.Total{Bytes: 150e3, End: 1}}},
		}
		return &result.Report{Acceptance: &result.Acceptance{}, Runs: []*result.Run{run}, Items: []result.Item{{ID: "capture"}}}
	}
	for _, c := range []struct {
		packets      int
		result, want string
	}{
		{180, result.Pass, "agrees with both ends' counts"},
		{201, result.Pass, "agrees with both ends' counts"},
		{100, result.Inconclusive, "the capture is not whole"},
		{400, result.Fail, "more than the 200 000 that were sent"},
		{0, result.Inconclusive, "has nothing of the runs"},
	} {
		r := rep()
		if err := suite.ThirdPoint(r, "mirror.pcap", bytes.NewReader(seen(c.packets, 1000))); err != nil {
			t.Fatal(err)
		}
		if len(r.Items) != 1 || r.Items[0].Result != c.result || !strings.Contains(r.Items[0].Reasons[0], c.want) {
			t.Errorf("%d packets: %+v", c.packets, r.Items)
		}
		if c.packets == 201 {
			if f := r.Acceptance.Capture.Flows[0]; !strings.Contains(f.Reason, "the 200 000 that were sent, and what opens the streams") {
				t.Errorf("beside the payload: %q", f.Reason)
			}
		}
		if c.packets == 180 {
			if f := r.Acceptance.Capture.Flows[0]; !strings.Contains(f.Reason, "20 datagrams were lost before it, 30 behind it") {
				t.Errorf("place: %q", f.Reason)
			}
		}
	}
	if err := suite.ThirdPoint(rep(), "x", strings.NewReader("no capture at all")); err == nil {
		t.Error("a text was taken for a capture")
	}
}
