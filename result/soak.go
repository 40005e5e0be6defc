package result

// Soak is what a load of hours or days showed (M-SOAK). Times are seconds since its start on
// the recording end's clock, the time in which that end did not run included.
type Soak struct {
	Asked    float64      `json:"asked_s"`          // how long it was to last
	Length   float64      `json:"length_s"`         // how long it lasted
	Record   string       `json:"record,omitempty"` // file of its 1-s records, JSON lines
	Tests    int          `json:"tests"`            // that it was made of, one after the other
	Restarts int          `json:"restarts"`         // of them because the one before had broken off or stood still
	Ways     []SoakWay    `json:"ways"`             // one per direction, up first
	Outages  []Outage     `json:"outages"`          // in order; at most 10000
	Gaps     []SoakGap    `json:"gaps"`             // time that was not measured and is no outage; at most 10000
	Hours    []SoakHour   `json:"hours"`            // from the start on
	Machine  *SoakMachine `json:"machine"`          // this host; nil = nothing is known
}

// SoakWay is one direction of a soak.
type SoakWay struct {
	Direction Direction `json:"direction"` // of it
	// Basis says whose count the rates are: "receiver"; "acknowledged" (TCP's sender, of what the
	// other kernel had taken); "sender" (UDP towards a peer that does not tell while it counts).
	Basis   string      `json:"basis"`
	Levels  []SoakLevel `json:"levels"`               // one, or one for each step of the load
	Figures SoakFigures `json:"whole"`                // of the whole
	Trend   *SoakTrend  `json:"trend"`                // nil = too few values
	Shifts  []SoakShift `json:"shifts"`               // changes of the level, in order
	Late    *SoakShift  `json:"late_limit,omitempty"` // the last shift, where it is a limit that came late; nil = there is none
	Period  *SoakPeriod `json:"period,omitempty"`     // nil = no pattern repeats
	// Rates are payload bit/s of every Step seconds from the start; null = not measured. 1 s up to 25
	// hours; of longer soaks twice as long as often as it takes to stay below 90000 values.
	Step  float64    `json:"step_s"`
	Rates []*float64 `json:"rates_bps"` // see Step
	// Minutes are the 1-s records minute by minute; of soaks above 14 days the last 20160.
	Minutes *SoakMinutes `json:"minutes,omitempty"`
}

// SoakMinutes are columns of one length: value i is of the minute that begins 60·i s after Start.
type SoakMinutes struct {
	Start    float64    `json:"start_s"`    // s since the soak began
	Measured []float64  `json:"measured_s"` // s that were measured
	Bytes    []int64    `json:"bytes"`      // payload
	Median   []*float64 `json:"median_bps"` // of the 1-s rates, as Min and Max; within 0.3 %; null = not measured
	Min      []*float64 `json:"min_bps"`    // the slowest
	Max      []*float64 `json:"max_bps"`    // the fastest
	// Packets, Lost, Retransmits and PDV are absent where no minute knows them, and null in those that do not.
	Packets     []*int64   `json:"packets,omitempty"`     // UDP
	Lost        []*int64   `json:"lost,omitempty"`        // UDP
	Retransmits []*int64   `json:"retransmits,omitempty"` // TCP segments
	PDV         []*float64 `json:"pdv_p99_s,omitempty"`   // UDP: from the intervals' quantiles
}

// SoakLevel is a step of the load with what it usually carries.
type SoakLevel struct {
	Share     float64 `json:"share"`         // of the full load, 0..1
	Reference float64 `json:"reference_bps"` // median of its 1-s rates, or what the user named; availability is judged by it
}

// SoakFigures sum up a time.
type SoakFigures struct {
	Direction    Direction `json:"direction"`             // of it
	Measured     float64   `json:"measured_s"`            // s that were measured
	Bytes        int64     `json:"bytes"`                 // payload
	Median       *float64  `json:"median_bps"`            // of the 1-s rates, as P1, P5, Min and Max; within 0.3 %
	P1           *float64  `json:"p1_bps"`                // 1 of 100 was slower
	P5           *float64  `json:"p5_bps"`                // 5 of 100 were slower
	Min          *float64  `json:"min_bps"`               // the slowest
	Max          *float64  `json:"max_bps"`               // the fastest
	Availability *float64  `json:"availability"`          // share of the measured seconds with at least 90 % of the reference
	Outages      int       `json:"outage_count"`          // of an hour: that began in it
	OutageTime   float64   `json:"outage_s"`              // s in outages
	Packets      *int64    `json:"packets,omitempty"`     // UDP
	Lost         *int64    `json:"lost,omitempty"`        // UDP
	Retransmits  *int64    `json:"retransmits,omitempty"` // TCP segments; nil = the sender does not tell
	PDV          *float64  `json:"pdv_p99_s,omitempty"`   // UDP: from the intervals' quantiles
}

// Outage is a time of at least a second in which less than a tenth of the usual came through.
type Outage struct {
	Direction string  `json:"direction"` // "up", "down", "both"
	Start     float64 `json:"start_s"`   // s since the soak began
	Length    float64 `json:"length_s"`  // until the path answered again where that was watched, else until payload came
	// Stalled is how long payload stood still: TCP needs a while to notice that the path is back.
	Stalled float64 `json:"stalled_s"`
	// Basis of Length: "reach" (the path was asked ten times a second until it answered), "payload".
	Basis     string `json:"basis"`
	Restarted bool   `json:"restarted,omitempty"` // the test was begun again after it
	Open      bool   `json:"open,omitempty"`      // it had not ended when the soak did
	Why       string `json:"why,omitempty"`       // "silent": no answer; "refused": the host answered, the server did not
}

// SoakGap is a time that was not measured.
type SoakGap struct {
	Start  float64 `json:"start_s"`  // s since the soak began
	Length float64 `json:"length_s"` // s
	Why    string  `json:"why"`      // "changeover": from one test to the next; "away": this program did not run
}

// SoakHour is an hour of a soak.
type SoakHour struct {
	Start float64       `json:"start_s"` // s since the soak began
	Ways  []SoakFigures `json:"ways"`    // up first
	// Of this host in that hour, mean and extremes; nil = not known.
	CPU        *float64 `json:"cpu_pct"`     // mean of this program, percent of one core
	Busiest    *float64 `json:"busiest"`     // largest share of a core in ten seconds, 0..1
	Memory     *int64   `json:"rss_bytes"`   // of this program, largest
	MinMHz     *int     `json:"min_mhz"`     // lowest clock of the fastest core
	MaxCelsius *float64 `json:"max_celsius"` // hottest sensor
	Throttles  *int64   `json:"throttles"`   // times that a core was slowed because of its heat
}

// SoakMachine is this host over a soak.
type SoakMachine struct {
	FirstMemory *int64   `json:"first_rss_bytes"` // median of this program's memory in the first tenth, its first minute left out
	LastMemory  *int64   `json:"last_rss_bytes"`  // the same of the last tenth
	Growth      *float64 `json:"rss_growth"`      // (last − first)/first; nil = the soak was too short to say
	CPU         *float64 `json:"cpu_pct"`         // mean of this program, percent of one core
	MaxCelsius  *float64 `json:"max_celsius"`     // hottest sensor
	MinMHz      *int     `json:"min_mhz"`         // lowest clock of the fastest core
	MaxMHz      *int     `json:"max_mhz"`         // highest
	Throttles   *int64   `json:"throttles"`       // times that a core was slowed because of its heat
}

// SoakTrend is the Theil–Sen slope of the medians of equal blocks, with its Mann–Kendall test.
type SoakTrend struct {
	Slope float64 `json:"slope_per_day"` // change a day, as a share of the usual rate
	Low   float64 `json:"low_95"`        // least slope that 95 % allow
	High  float64 `json:"high_95"`       // largest
	P     float64 `json:"p"`             // chance of as clear a trend without one
	Block float64 `json:"block_s"`       // s; length of the blocks
	N     int     `json:"n"`             // blocks
}

// SoakShift is a change of the level of the rate.
type SoakShift struct {
	At     float64 `json:"at_s"`   // s since the soak began
	Before float64 `json:"before"` // median up to it from the shift before, as a share of the usual rate
	After  float64 `json:"after"`  // the same behind it
	Ratio  float64 `json:"ratio"`  // after/before
	P      float64 `json:"p"`      // chance that values in random order show as clear a change
	Alarm  bool    `json:"cusum"`  // a CUSUM alarms there too
	Stays  bool    `json:"stays"`  // no later shift takes it back
	// Of a limit that came late: the payload that had passed before it, and what the host tells of
	// its cause: "thermal", "clock", "quota", "" (unknown: a credit of the path, most often).
	Bytes int64  `json:"bytes,omitempty"`
	Cause string `json:"cause,omitempty"` // see Bytes
}

// SoakPeriod is a pattern that repeats.
type SoakPeriod struct {
	Period float64 `json:"period_s"` // s
	R      float64 `json:"r"`        // autocorrelation at that distance
}
