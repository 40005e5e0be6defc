package result

// ConnRate is how many connections a second could be opened.
type ConnRate struct {
	Target   string         `json:"address"`  // address that was connected to
	Exchange bool           `json:"exchange"` // each connection carried a byte both ways
	Steps    []ConnRateStep `json:"steps"`    // in the order of measuring
	// Reached is the most that were opened in a second with none failing; nil = not even the first step.
	Reached *float64 `json:"reached_per_s"`
	// Limit is what new connections fail by, "" = none failed: "refused", "no-answer",
	// "local-ports", "local-files", "local-cpu", "reset", "busy", "silent", "slow", "other".
	Limit string `json:"fails_by,omitempty"`
	Where End    `json:"fails_at,omitempty"` // at which end; absent = on the way, or not known
	Why   string `json:"because,omitempty"`  // a sentence with the evidence
}

// ConnRateStep is one rate that was tried.
type ConnRateStep struct {
	Asked   float64     `json:"asked_per_s"`  // 0 = as fast as it goes
	Seconds float64     `json:"span"`         // how long
	Tried   int64       `json:"tried"`        // connections begun
	Opened  int64       `json:"opened"`       // that came about
	Rate    float64     `json:"opened_per_s"` // Opened over Seconds
	Failed  []ConnFault `json:"failures"`     // why others did not
	Connect *Quantiles  `json:"connect_time"` // time to connect, s
	// Held is how long, s, no connection could be begun because 8192 were being opened at the same time.
	Held float64 `json:"held_s,omitempty"`
	// SYNAgain counts SYNs that this host sent again meanwhile (all its programs); nil = not known.
	SYNAgain *int64 `json:"syn_again"`
}

// ConnFault is a kind of failure with its number.
type ConnFault struct {
	Code  string `json:"fault"`       // as in ConnRate.Limit
	Count int64  `json:"connections"` // connections
	Text  string `json:"said"`        // what the system said, of the first
}
