package traffic

import (
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// BenchmarkUDP moves datagrams over loopback for a second, both ends in this process,
// and reports what arrived, what was lost, and the CPU time of both. Loopback never cuts
// a super-packet, so the figures with offload are those of the stack, not of a card.
// `go test -run - -bench UDP/ -benchtime 1x`.
func BenchmarkUDP(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		rate int64
		tx   UDPConfig
		rx   plan.Offload
	}{
		{"1448/full", 1448, 0, UDPConfig{}, ""},
		{"1448/full/plain-receiver", 1448, 0, UDPConfig{}, plan.OffloadOff},
		{"1448/full/plain", 1448, 0, UDPConfig{Offload: plan.OffloadOff}, plan.OffloadOff},
		{"64/full", 64, 0, UDPConfig{}, ""},
		{"64/full/plain", 64, 0, UDPConfig{Offload: plan.OffloadOff}, plan.OffloadOff},
		{"1448/1G", 1448, 1e9, UDPConfig{}, ""},
		{"1448/1G/frugal", 1448, 1e9, UDPConfig{Pacing: plan.PacingFrugal}, ""},
		{"1448/5G/frugal", 1448, 5e9, UDPConfig{Pacing: plan.PacingFrugal}, ""},
		{"1448/10G/frugal", 1448, 10e9, UDPConfig{Pacing: plan.PacingFrugal}, ""},
		{"1400/1M", 1400, 1e6, UDPConfig{}, ""},
		{"1400/10M", 1400, 10e6, UDPConfig{}, ""},
		{"1400/100M", 1400, 100e6, UDPConfig{}, ""},
		{"1400/500M", 1400, 500e6, UDPConfig{}, ""},
		{"64/1000pps", 64, 512e3, UDPConfig{}, ""},
		{"1400/100M/precise", 1400, 100e6, UDPConfig{Pacing: plan.PacingPrecise}, ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				measureUDP(b, c.size, c.rate, c.tx, c.rx)
			}
		})
	}
}

func measureUDP(b *testing.B, size int, rate int64, txUDP UDPConfig, rxOffload plan.Offload) {
	x, y := udpPairs(b, 1)
	base := readUsage()
	rx := start(b, Config{
		End: result.Server, Transport: plan.UDP, BlockSize: size, Bitrate: rate, UDP: UDPConfig{Offload: rxOffload},
	}, flowsOf(y, result.Up, false))
	tx := start(b, Config{
		End: result.Client, Transport: plan.UDP, BlockSize: size, Bitrate: rate, Duration: time.Second, UDP: txUDP,
	}, flowsOf(x, result.Up, true))
	tx.wait(b, Duration)
	tx.StopSend()
	rx.StopReceive(true)
	tt, rt := tx.totals(b), rx.totals(b)
	cost, _ := readUsage().since(base, sum(rt))
	tx.Close()
	rx.Close()
	s, r := tt.Flows[0], rt.Flows[0]
	sent, got := s.UDP.Sent, r.UDP.Received
	report := func(v float64, unit string) { b.ReportMetric(v, unit) }
	report(0, "ns/op")
	report(r.Total.Rate()/1e9, "Gbit/s")
	report(float64(got.Packets)/r.Total.Seconds()/1e6, "Mpps")
	report(100*float64(sent.Packets-got.Packets)/float64(max(sent.Packets, 1)), "%lost")
	if cost != nil && cost.SecPerGB != nil {
		report(*cost.SecPerGB, "CPU-s/GB")
	}
	if rate > 0 && sent.Late != nil {
		report(100*(float64(sent.Bytes)*8/s.Total.Seconds()/float64(rate)-1), "%rate-error")
		report(sent.Late.P50*1e6, "late-p50-µs")
		report(sent.Late.P99*1e6, "late-p99-µs")
		report(float64(sent.LargestBurst)/float64(sent.PlannedBurst), "burst/planned")
		report(float64(sent.Stalls), "stalls")
		report(float64(sent.Unsent), "unsent")
	}
}
