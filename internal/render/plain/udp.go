package plain

import (
	"fmt"
	"strings"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// secondsText prints a time of less than a second in ms, as every time of UDP is.
func secondsText(s float64) string { return number(s*1000) + " ms" }

// offers tells before the first datagram what a UDP test is about to send in each
// direction: rate, size, packets a second, rate on the wire, and how much in all.
func offers(run *result.Run) string {
	t := run.Test
	if t.Transport != "udp" || t.BlockSize <= 0 {
		return ""
	}
	streams := int64(max(t.Streams, 1))
	total := t.Bitrate * streams
	if t.MaxRate > 0 && (total == 0 || t.MaxRate < total) {
		total = t.MaxRate
	}
	size0 := fmt.Sprintf("datagrams of %d bytes", t.BlockSize)
	if total == 0 {
		return size0 + ", as many as this host can send"
	}
	text := rate(float64(total)) + " of payload"
	if streams > 1 && t.Bitrate > 0 {
		text = fmt.Sprintf("%d × %s of payload", streams, rate(float64(t.Bitrate)))
	}
	text += " in " + size0 + fmt.Sprintf(": %s/s", packetRate(float64(total)/8/float64(t.BlockSize)))
	n := conclude.DatagramBytes(t.BlockSize, 0, familyOf(run))
	text += ", " + rate(float64(total)*float64(n[units.L1])/float64(n[units.L7])) + " on the wire (l1)"
	if t.Duration > 0 && t.Bytes == 0 && t.Blocks == 0 {
		bytes := int64(float64(total) / 8 * (t.Duration + t.Omit))
		if t.MaxBytes > 0 {
			bytes = min(bytes, t.MaxBytes)
		}
		text += ", " + size(bytes) + " in all"
	}
	if t.Direction == "both" {
		text += ", each way"
	}
	return text
}

func packetRate(pps float64) string {
	if pps >= 100 {
		return conclude.Grouped(int64(pps + 0.5))
	}
	return fmt.Sprintf("%.3g", pps)
}

func familyOf(run *result.Run) int {
	if len(run.Streams) > 0 && strings.Contains(run.Streams[0].Remote.Host, ":") {
		return 6
	}
	return 4
}

// worstPDV is the 99th percentile of the delay variation in a receiver's row: that of the
// worst stream. nil when no stream of the direction tells.
func worstPDV(row *result.Interval) *float64 {
	var out *float64
	for i := range row.Streams {
		s := &row.Streams[i]
		if s.Sender || s.UDP == nil || s.UDP.PDV == nil {
			continue
		}
		if p := s.UDP.PDV.P99; out == nil || p > *out {
			out = &p
		}
	}
	return out
}

// udpHead are the titles of UDP's cells in the totals.
var udpHead = []string{"lost", "share", "reord", "dup", "jitter", "PDV p99"}

// udpCounts are those cells of one line: the account of both ends where it is known, else
// the receiver's totals in iperf3's meaning.
func udpCounts(u *result.UDPStream, rcv *result.Total) []string {
	var lost, reord, dup *int64
	var jitter, pdv *float64
	part := screen.Unknown
	if rcv != nil {
		lost, reord, jitter = rcv.Lost, rcv.OutOfOrder, rcv.Jitter
		if lost != nil && rcv.Packets != nil {
			part = share(*lost, *rcv.Packets)
		}
	}
	if u != nil && u.Loss != nil {
		lost, part = &u.Loss.Lost, share(u.Loss.Lost, u.Loss.Sent)
	}
	if u != nil && u.Received != nil {
		r := u.Received
		reord, dup = &r.Reordered, &r.Duplicates
		if r.Jitter != nil {
			jitter = &r.Jitter.Mean
		}
		if r.PDV != nil {
			pdv = &r.PDV.P99
		}
	}
	return []string{
		optional(lost, whole), part, optional(reord, whole), optional(dup, whole), optional(jitter, secondsText), optional(pdv, secondsText),
	}
}

// udpFacts are the lines of UDP below the totals: how loss came, delay, pacing, layers and
// what that means for voice and video.
func udpFacts(run *result.Run, add func(name, text string)) {
	if run.Test.Transport != "udp" {
		return
	}
	for _, s := range run.Sums {
		to := func(e result.End) string {
			if len(run.Sums) < 2 {
				return ""
			}
			return conclude.EndName(run, e) + " "
		}
		if s.UDP != nil {
			add("loss", prefixed(to(s.Direction.Receiver()), lossPattern(s.UDP)))
			add("delay", prefixed(to(s.Direction.Receiver()), delayText(s.UDP.Received)))
			add("pacing", prefixed(to(s.Direction.Sender()), pacingText(s.UDP.Sent)))
		}
		add("grades", prefixed(to(s.Direction.Receiver()), conclude.GradeText(s.Grades)))
	}
	for _, l := range run.Layers {
		name := ""
		if len(run.Layers) > 1 {
			name = conclude.EndName(run, l.Direction.Receiver()) + " "
		}
		unit, div := "Mbit/s", 1e6
		if l.L1 < 1e6 {
			unit, div = "kbit/s", 1e3
		}
		add("layers", fmt.Sprintf("%sl7 %.2f, l4 %.2f, l3 %.2f, l2 %.2f, l1 %.2f %s", name, l.L7/div, l.L4/div, l.L3/div, l.L2/div, l.L1/div, unit))
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// lossPattern says how loss and disorder came: one by one or in runs.
func lossPattern(u *result.UDPStream) string {
	var parts []string
	r := u.Received
	if l := u.Loss; l != nil && l.Lost > 0 {
		if l.Tail > 0 {
			parts = append(parts, fmt.Sprintf("%s after the last that arrived", conclude.Grouped(l.Tail)))
		}
		if r != nil && r.Periods != nil {
			p := r.Periods
			parts = append(parts, fmt.Sprintf("%s in a row on average, %s at most, %s", figure(p.MeanLength), conclude.Grouped(p.Longest), count(int(p.Runs), "run")))
		}
	}
	if r != nil {
		if r.Reordered > 0 {
			parts = append(parts, fmt.Sprintf("%s reordered, by up to %s", conclude.Grouped(r.Reordered), conclude.Grouped(r.MaxExtent)))
		}
		if r.Late > 0 {
			parts = append(parts, fmt.Sprintf("%s too late to tell from duplicates", conclude.Grouped(r.Late)))
		}
		if r.Foreign > 0 {
			parts = append(parts, fmt.Sprintf("%s of others, not counted", conclude.Grouped(r.Foreign)))
		}
	}
	return strings.Join(parts, "; ")
}

func figure(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// delayText is jitter and delay variation.
func delayText(r *result.UDPReceived) string {
	if r == nil {
		return ""
	}
	var parts []string
	if r.Jitter != nil {
		parts = append(parts, fmt.Sprintf("jitter %s (largest %s)", secondsText(r.Jitter.Mean), secondsText(r.Jitter.Max)))
	}
	if q := r.PDV; q != nil {
		parts = append(parts, fmt.Sprintf("variation (PDV) p50 %s, p95 %s, p99 %s, p99.9 %s, max %s", number(q.P50*1000), number(q.P95*1000), number(q.P99*1000), number(q.P999*1000), secondsText(q.Max)))
	}
	if r.Outliers > 0 {
		parts = append(parts, fmt.Sprintf("%s time stamps jumped and were left out", conclude.Grouped(r.Outliers)))
	}
	if r.Stamps != "" && len(parts) > 0 {
		parts = append(parts, r.Stamps+" time stamps")
	}
	return strings.Join(parts, "; ")
}

// pacingText is how well the sender kept to its due times.
func pacingText(s *result.UDPSent) string {
	if s == nil {
		return ""
	}
	var parts []string
	if s.PlannedBurst > 0 {
		parts = append(parts, fmt.Sprintf("bursts of %s planned, %s the largest", conclude.Grouped(s.PlannedBurst), conclude.Grouped(s.LargestBurst)))
	}
	if q := s.Late; q != nil {
		parts = append(parts, fmt.Sprintf("late p50 %s, p99 %s, max %s", number(q.P50*1000), number(q.P99*1000), secondsText(q.Max)))
	}
	if s.Stalls > 0 {
		parts = append(parts, count(int(s.Stalls), "stall")+" over 1 ms")
	}
	if s.Unsent > 0 {
		parts = append(parts, conclude.Grouped(s.Unsent)+" given up")
	}
	if s.Refused > 0 {
		parts = append(parts, conclude.Grouped(s.Refused)+" refused by the kernel")
	}
	return strings.Join(parts, "; ")
}
