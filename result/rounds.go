package result

// Rounds is the account of one figure that was measured several times (M-ROUNDS).
type Rounds struct {
	Of        string     `json:"of,omitempty"`         // name of the stages that were repeated, e.g. "up"; absent = the whole
	Figure    string     `json:"figure"`               // what was measured, e.g. "goodput"
	Direction string     `json:"direction,omitempty"`  // "up", "down"; absent = of neither
	Unit      string     `json:"unit"`                 // "bit/s", "s", "ratio", ""
	Values    []*float64 `json:"by_round"`             // by round; null = that round did not tell
	Runs      []int      `json:"round_runs,omitempty"` // index in runs, by round; -1 = there is none
	Median    *float64   `json:"median"`               // of the known values
	Min       *float64   `json:"min"`                  // least of them
	Max       *float64   `json:"max"`                  // largest of them
	CoV       *float64   `json:"cov"`                  // standard deviation over mean
	// The confidence interval of the median between two order statistics, which takes six
	// rounds; with fewer there is only the range, and all three are null.
	Low   *float64 `json:"ci_low"`   // its lower end
	High  *float64 `json:"ci_high"`  // its upper end
	Level *float64 `json:"ci_level"` // its coverage, e.g. 0.969
	// Marked are the rounds, from 1, that lie far from the others (robust z above 3.5). They
	// count all the same.
	Marked  []int `json:"marked"`
	Settled *bool `json:"settled,omitempty"` // of --rounds auto: the figures settled before the last round
}

// Comparison is what M-ROUNDS says of side B against side A.
type Comparison struct {
	A           ComparedSide `json:"a"`           // what is compared with
	B           ComparedSide `json:"b"`           // what is judged
	Threshold   float64      `json:"threshold"`   // share by which a figure must differ to count
	Verdict     string       `json:"verdict"`     // "faster", "slower", "same", "undecided": by goodput (or what was sent), B against A
	Metrics     []Compared   `json:"metrics"`     // goodput (or what was sent) first
	Differences []Difference `json:"differences"` // what else is not alike
}

// ComparedSide is one side of a comparison.
type ComparedSide struct {
	Name   string   `json:"side"`                // as typed
	Inputs []string `json:"sources"`             // files, or runs of the history
	Runs   int      `json:"compared_runs"`       // that were compared
	From   string   `json:"first_run,omitempty"` // when the first began, UTC
	To     string   `json:"last_run,omitempty"`  // when the last began, UTC
}

// Compared is one figure of both sides.
type Compared struct {
	Metric    string   `json:"metric"`              // "goodput" (or "sent", where a side's documents do not tell what arrived), "loss", "jitter", "rtt", "retransmits", "cpu-client", "cpu-server"
	Direction string   `json:"direction,omitempty"` // "up", "down"
	Unit      string   `json:"unit"`                // "bit/s", "ratio", "s", "s/GB"
	A         Rounds   `json:"a"`                   // values of side A
	B         Rounds   `json:"b"`                   // values of side B
	Shift     float64  `json:"shift"`               // Hodges–Lehmann: median of all differences B − A, in Unit
	Share     *float64 `json:"share"`               // Shift over the median of A; nil = that is 0
	Low       *float64 `json:"shift_low"`           // interval of the shift; nil = too few rounds for one
	High      *float64 `json:"shift_high"`          // its upper end
	Level     *float64 `json:"shift_level"`         // its coverage
	U         float64  `json:"u"`                   // Mann–Whitney
	P         float64  `json:"p"`                   // two-sided, exact up to 20 rounds a side
	Holm      float64  `json:"p_holm"`              // P corrected (Holm) within its family: the directions of goodput; all other metrics
	TooFew    bool     `json:"too_few"`             // fewer than four rounds a side: by the threshold alone
	Verdict   string   `json:"verdict"`             // of goodput "faster", "slower"; of others "better", "worse"; "same", "undecided"
}

// Difference is a fact in which the sides of a comparison differ.
type Difference struct {
	What string `json:"what"`                 // stable word, e.g. "streams", "driver", "hops"
	End  End    `json:"differs_at,omitempty"` // whose; absent = of the test
	A    string `json:"a"`                    // of side A
	B    string `json:"b"`                    // of side B
	// Setting: it is one of the test itself, so that the figures do not compare like with like.
	Setting bool `json:"setting,omitempty"`
}
