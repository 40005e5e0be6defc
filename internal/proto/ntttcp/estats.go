package ntttcp

import (
	"errors"
	"io/fs"

	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// estats is what the system told of each connection (-es).
type estats struct {
	out   *emitter
	flows []traffic.Flow
	kept  [][]result.EStats // per flow
	told  bool              // that something was not read
}

// newEStats makes the system keep its extended statistics of the flows' connections. Where it
// keeps none that is said, and the result is nil.
func newEStats(flows []traffic.Flow, out *emitter) *estats {
	e := &estats{out: out, flows: flows, kept: make([][]result.EStats, len(flows))}
	for _, f := range flows {
		if err := f.Conn.CollectEStats(); err != nil {
			e.missing(err)
			return nil
		}
	}
	return e
}

// read reads them; one goroutine at a time may call it.
func (e *estats) read(moment string) {
	if e == nil {
		return
	}
	for i, f := range e.flows {
		s, err := f.Conn.EStats()
		if err != nil {
			e.missing(err)
			continue
		}
		e.kept[i] = append(e.kept[i], result.EStats{Moment: moment, Structures: s})
	}
}

// put puts them into the streams of a Finish, once nobody reads any more.
func (e *estats) put(streams []result.Stream) {
	if e == nil {
		return
	}
	for i := range min(len(streams), len(e.kept)) {
		streams[i].EStats = e.kept[i]
	}
}

func (e *estats) missing(err error) {
	if e.told {
		return
	}
	e.told = true
	level, text := result.Warn, err.Error()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		level, text = result.Info, "this system does not keep them" // whoever asked was told at once
	case errors.Is(err, fs.ErrPermission):
		text = "they are for administrators"
	}
	e.out.notice(result.Notice{Code: "estats-missing", Level: level, Text: "-es: the statistics of the connections are not read: " + text})
}
