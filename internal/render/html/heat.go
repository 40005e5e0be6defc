package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/svg"
	"github.com/fullbore-net/fullbore/result"
)

const (
	mostColumns = 220 // of the heat map, all stages together
	mostCores   = 24  // of an end that are shown
)

// heat draws how busy each core of both ends was in each stage. Where several intervals or
// more cores than fit fall together, the busiest is shown.
func heat(rep *result.Report) *plot {
	h := svg.Heat{ID: "cpu", Title: "Processor load of both ends, by core, over the stages", Label: "stages by their numbers", Scale: "busy"}
	rows := 0
	perRun := make([]int, len(rep.Runs))
	for i, r := range rep.Runs {
		for _, e := range []result.End{result.Client, result.Server} {
			perRun[i] = max(perRun[i], len(samples(r, e)))
		}
		rows += perRun[i]
	}
	if rows == 0 {
		return nil
	}
	for i := range perRun {
		if perRun[i] == 0 {
			continue
		}
		if rows > mostColumns {
			perRun[i] = max(perRun[i]*mostColumns/rows, 2)
		}
		h.Sections = append(h.Sections, svg.Section{Label: numberOf(rep, i), Columns: perRun[i]})
	}
	var says []string
	for _, e := range []result.End{result.Client, result.Server} {
		g, say := cores(rep, e, perRun)
		if len(g.Rows) > 0 {
			h.Groups = append(h.Groups, g)
			says = append(says, say)
		}
	}
	if len(h.Groups) == 0 {
		return nil
	}
	h.Desc = strings.Join(says, "; ") + "."
	return &plot{ID: "cpu", Heading: "Processors of both ends", Text: h.Desc, Drawing: drawn(h.Draw())}
}

func samples(r *result.Run, e result.End) (out []*result.HostSample) {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.End == e && row.Host != nil && len(row.Host.Cores) > 0 {
			out = append(out, row.Host)
		}
	}
	return out
}

// cores makes the rows of one end.
func cores(rep *result.Report, e result.End, perRun []int) (svg.HeatGroup, string) {
	cells := map[int][]float64{}
	columns := 0
	for _, n := range perRun {
		columns += n
	}
	at := 0
	for i, r := range rep.Runs {
		list := samples(r, e)
		for k, s := range list {
			col := at + min(k*perRun[i]/len(list), perRun[i]-1)
			// Fewer samples than columns: one sample covers the columns up to the next.
			for end := max(at+(k+1)*perRun[i]/len(list), col+1); col < end; col++ {
				for _, c := range s.Cores {
					if cells[c.CPU] == nil {
						cells[c.CPU] = slices.Repeat([]float64{math.NaN()}, columns)
					}
					busy := min(max(1-c.Idle-c.IOWait, 0), 1)
					if old := cells[c.CPU][col]; math.IsNaN(old) || busy > old {
						cells[c.CPU][col] = busy
					}
				}
			}
		}
		at += perRun[i]
	}
	name := endName(rep, e)
	g := svg.HeatGroup{Name: name + " (" + string(e) + ")"}
	ids := make([]int, 0, len(cells))
	for id := range cells {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if all := len(ids); all > mostCores {
		slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(mean(cells[b]), mean(cells[a])) })
		ids = ids[:mostCores]
		slices.Sort(ids)
		g.Name += fmt.Sprintf(": the %d busiest of %d cores", mostCores, all)
	}
	busiest, load := 0, -1.0
	for _, id := range ids {
		g.Rows = append(g.Rows, svg.HeatRow{Label: fmt.Sprint("core ", id), Cells: cells[id]})
		if m := mean(cells[id]); m > load {
			busiest, load = id, m
		}
	}
	return g, fmt.Sprintf("%s: busiest is core %d, %.0f %% busy on average", name, busiest, 100*max(load, 0))
}

func mean(vs []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range vs {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
