package diagnose

import "github.com/fullbore-net/fullbore/result"

// Compact takes out of a report what no rule reads, for records that are kept: the streams
// of rows of more than manyStreams, histograms, the options of other protocols. Judging the
// compacted history gives the same verdicts (a test holds it to that).
func Compact(rep *result.Report) {
	for _, run := range rep.Runs {
		streams := len(run.Streams) > manyStreams
		for i := range run.Sums {
			streams = streams && run.Sums[i].Receiver != nil // else what each has acknowledged is needed
		}
		for i := range run.Rows {
			r := &run.Rows[i]
			if streams {
				r.Streams = nil
			}
			if r.Host != nil && r.Host.Softnet != nil && r.Host.Softnet.Dropped == 0 {
				h := *r.Host
				h.Softnet = nil
				r.Host = &h
			}
			for j := range r.Streams {
				r.Streams[j].UDP = nil
			}
		}
		for i := range run.Probes {
			run.Probes[i].Histogram = nil
		}
		for i := range run.Streams {
			if u := run.Streams[i].UDP; u != nil && u.Received != nil {
				u.Received.Histogram = nil
			}
		}
		for i := range run.Sums {
			if u := run.Sums[i].UDP; u != nil && u.Received != nil {
				u.Received.Histogram = nil
			}
		}
	}
}

// manyStreams is from how many on the rows of single streams are not kept.
const manyStreams = 2
