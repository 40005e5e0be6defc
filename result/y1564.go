package result

// Activation is a service activation test by ITU-T Y.1564 (M-1564). Rates are information rates:
// bit/s of Ethernet frames with their check, without preamble and gap.
type Activation struct {
	MEF      bool   `json:"mef"`            // judged by the MEF's figures
	Short    bool   `json:"shortened"`      // --quick: times are not those of the file
	Basis    string `json:"delay_basis"`    // what FTD is: "one-way", "half-round-trip", "" = not known
	Software bool   `json:"software_times"` // time stamps are made in software at both ends
	// Floor is by how much the senders kept their datagrams' times at worst, 99.9th percentile, s: variation of delay
	// that is not above it may be the hosts' own. nil = they did not tell.
	Floor *float64       `json:"timing_floor_s,omitempty"`
	Steps []ActivateStep `json:"activation"` // both phases, in order; one entry a service, step and direction
}

// ActivateStep is one direction of one step of one service.
type ActivateStep struct {
	Phase     int       `json:"phase"`                     // 1: alone; 2: all services together
	Service   string    `json:"service"`                   // its name
	Step      string    `json:"step"`                      // "cir-25" … "cir-100", "eir", "policing", "cbs" and "ebs" (bursts), "together"; of an EMIX all sizes are one entry
	Way       Direction `json:"step_way"`                  // which direction
	Offered   float64   `json:"offered_ir_bps"`            // that was to be sent
	Sent      *float64  `json:"sent_ir_bps"`               // what the sender really sent
	IR        *float64  `json:"ir_bps"`                    // received: of what was sent, what arrived
	FLR       *float64  `json:"flr"`                       // lost frames over sent ones
	Dropped   *int64    `json:"dropped_by_host,omitempty"` // of the lost, at least so many at the receiving host's socket; nil = none, or not known
	FTDMin    *float64  `json:"ftd_min_s"`                 // least frame transfer delay
	FTD       *float64  `json:"ftd_s"`                     // mean
	FTDMax    *float64  `json:"ftd_max_s"`                 // largest
	FD        *float64  `json:"fd_p99_9_s,omitempty"`      // 99.9th percentile of the same (MEF 48's frame delay)
	FDV       *float64  `json:"fdv_s"`                     // p99.9 less the least (Y.1540)
	FDVMax    *float64  `json:"fdv_max_s"`                 // the most less the least
	IFDV      *float64  `json:"ifdv_s"`                    // change from frame to frame, p99.9 (MEF)
	Avail     *float64  `json:"avail"`                     // phase 2: available seconds over all
	Severe    *int      `json:"severe_s"`                  // phase 2: seconds with more than half of the frames lost
	LeastIR   *float64  `json:"ir_least"`                  // least that passes; nil = no bound
	MostIR    *float64  `json:"ir_most"`                   // most that passes; nil = no bound
	Conformed string    `json:"conformity"`                // "pass", "fail", "inconclusive"
	Why       []string  `json:"whys"`                      // what was not met, or not known
}
