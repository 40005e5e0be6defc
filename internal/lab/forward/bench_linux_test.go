package forward

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab/link"
)

// BenchmarkCarry is what one packet costs the loop, from device to device: a stand-in
// for a TUN device makes the two system calls about as dear as the real one does.
func BenchmarkCarry(b *testing.B) {
	plain := link.Config{BitsPerSecond: 100e9, QueueBytes: 5e6, Delay: time.Nanosecond}
	classes := plain
	classes.Classes = []link.Class{{Name: "ef", DSCP: []uint8{46}}, {Name: "be"}}
	for _, bb := range []struct {
		name string
		cfg  Config
	}{
		{"plain", Config{MTU: 1500, Links: [2]link.Config{plain, plain}}},
		{"truth", Config{MTU: 1500, Truth: true, Links: [2]link.Config{plain, plain}}},
		{"path", Config{MTU: 1500, Links: [2]link.Config{classes, classes}}},
	} {
		b.Run(bb.name, func(b *testing.B) { carry(b, bb.cfg) })
	}
}

func carry(b *testing.B, cfg Config) {
	near, far := newDevice(b), newDevice(b)
	l, err := newLoop(cfg, near.loop, far.loop, [2]*tap{})
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(l.wake)
	defer unix.Close(l.doze)
	const batch = 8 // what a datagram socket holds
	p, buf := datagram(1, 1400), make([]byte, 2000)
	d := l.dirs[0]
	b.ReportAllocs()
	sent, used := 0, processorTime(b)
	for b.Loop() {
		for range batch {
			if err := near.write(p); err != nil {
				b.Fatal(err)
			}
		}
		sent += batch
		for d.out.Packets < int64(sent) {
			if err := d.pull(&l.clock); err != nil {
				b.Fatal(err)
			}
			d.push(&l.clock)
		}
		for range batch {
			if _, err := far.read(buf); err != nil {
				b.Fatal(err)
			}
		}
	}
	// What a busy machine's clock says of the packets is little; what they cost is more.
	b.ReportMetric(float64(processorTime(b)-used)/float64(sent), "cpu-ns/packet")
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "packets/s")
}

// processorTime is the user and system time of this process.
func processorTime(b *testing.B) time.Duration {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
