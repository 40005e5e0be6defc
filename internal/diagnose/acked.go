package diagnose

import "github.com/fullbore-net/fullbore/result"

// acknowledged is what the receiver's system acknowledged of a direction in the counted rows,
// payload bit/s: it stands in for the receiver's own count, where the peer does not tell it
// (NTTTCP, or a server that went away), since acknowledged bytes have arrived. Only the
// sender's kernel knows it (tcpi_bytes_acked, Linux 4.1); false elsewhere.
func acknowledged(run *result.Run, d result.Direction) (bps float64, known bool) {
	if run.End != d.Sender() || run.Test.Transport == "udp" {
		return 0, false
	}
	var began, first, last float64 // seconds, bytes, bytes
	end, seen, counted := 0.0, false, false
	for i := range run.Rows {
		r := &run.Rows[i]
		if r.End != d.Sender() {
			continue
		}
		bytes, n := 0.0, 0
		for j := range r.Streams {
			if s := &r.Streams[j]; s.Sender && s.TCP != nil && s.TCP.BytesAcked != nil {
				bytes += float64(*s.TCP.BytesAcked)
				n++
			}
		}
		if n == 0 || n < run.Test.Streams {
			continue // a stream that is not there makes no sum
		}
		switch {
		case r.Omitted:
			first, seen = bytes, true // the counted rows' times begin anew
		case !seen:
			first, began, seen, counted = bytes, r.Stop, true, true
		case !counted:
			began, counted = r.Start, true
			fallthrough
		default:
			last, end = bytes, r.Stop
		}
	}
	if end-began < 0.4 {
		return 0, false
	}
	return (last - first) * 8 / (end - began), true
}
