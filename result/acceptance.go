package result

import "time"

// Acceptance is what the hand-over of a link (M-ACCEPT) adds to its Report: what was agreed, what
// followed from it, and what is to be done. What each item said is in the Report's items.
type Acceptance struct {
	Suite    string `json:"suite"`              // name of the suite
	Class    string `json:"link_class"`         // "lan", "metro", "wan": whose default limits hold
	Link     int64  `json:"link_bps"`           // declared speed of the link, bit/s on layer 1
	Contract string `json:"contract,omitempty"` // the user's words: number, parties, place
	Trial    bool   `json:"trial"`              // made with --quick: shortened runs, no record
	Rounds   int    `json:"planned_rounds"`     // of each TCP item, at most
	Seed     int64  `json:"order_seed"`         // of the order within a round
	Settings string `json:"settings_sha256"`    // of everything that fixes what is measured and demanded

	Adaptive     bool   `json:"adaptive_rounds,omitempty"`  // TCP items had rounds until their throughput settled
	Parallel     *int   `json:"parallel_streams,omitempty"` // streams of the items that have several; nil = there was none
	ParallelFrom string `json:"parallel_from,omitempty"`    // where that number comes from: "given", "knee", "default"

	MTU     int      `json:"ideal_mtu_bytes"`        // packet size that the ideal is reckoned with
	Ideal   float64  `json:"ideal_tcp_bps"`          // payload bit/s that TCP could carry on this link
	RTT     *float64 `json:"base_rtt_s"`             // least round trip of the empty path
	Self    *float64 `json:"self_check_bps"`         // what this machine alone moves over loopback (M-SELF)
	Facts   *Facts   `json:"local_facts,omitempty"`  // settings of the host that measured
	Alarm   *float64 `json:"alarm_bps,omitempty"`    // payload rate below which a later test should alarm
	Streams *int     `json:"pool_streams,omitempty"` // connections that an application needs to fill the link

	Findings []string      `json:"observations"`      // what was seen, one sentence each
	Todo     []AdviceAt    `json:"advice_by_place"`   // what to do, by place
	Capture  *CaptureCheck `json:"capture,omitempty"` // a third point's capture; nil = none was given
	Swapped  []Swap        `json:"swapped,omitempty"` // the same link measured with the roles exchanged

	LinkFrom   string           `json:"link_from,omitempty"`        // where Link comes from: "given", "suite", "interface"
	Until      *time.Time       `json:"until,omitempty"`            // wall clock at the end of the last run, a label only; UTC
	Moved      int64            `json:"moved_bytes,omitempty"`      // payload that all runs over the link moved, warm-up included
	Plans      []ItemPlan       `json:"item_plans,omitempty"`       // how each item was to be measured, and what it is held to
	Rates      []ItemRate       `json:"item_rates,omitempty"`       // what was carried, on each layer
	Interfaces []InterfaceTotal `json:"interface_totals,omitempty"` // what the ends' interfaces counted in the runs over the link
	Scope      []string         `json:"scope,omitempty"`            // what the figures hold for, and what was not shown, one sentence each
}

// ItemPlan says how an item is measured, and what it is held to.
type ItemPlan struct {
	ID     string      `json:"plan_of"`     // the item, without a direction: "A2"
	Title  string      `json:"plan_title"`  // for people
	How    string      `json:"how"`         // what is sent, how long, how often: a sentence or two
	Limits []ItemLimit `json:"item_limits"` // in the order of the demands
}

// ItemLimit is one demand of an item.
type ItemLimit struct {
	Text    string `json:"limit_text"`           // "throughput ≥ 95 % of ideal"
	Defined string `json:"defined_by,omitempty"` // what defines the figure
	Source  string `json:"limit_set_by"`         // who set the limit: the profile, or the suite file
}

// ItemRate is what an item carried in a direction, on each layer.
type ItemRate struct {
	ID     string    `json:"rate_of"`        // the item: "A2-up"
	Layers LayerRate `json:"by_layer"`       // of what arrived; TCP's without what was sent again
	Share  float64   `json:"share_of_link"`  // layer 1, of the link's speed
	Packet int       `json:"packet_payload"` // bytes of payload in each packet, from which the layers were reckoned
	Median int       `json:"rounds_counted"` // rounds of which it is the median
}

// InterfaceTotal is what one interface counted while the link was measured.
type InterfaceTotal struct {
	End      End      `json:"end"`       // whose it is
	Counted  float64  `json:"counted_s"` // for so long, s
	Counters NICDelta `json:"counters"`  // over that time
}

// AdviceAt is what is to be done at one place.
type AdviceAt struct {
	Where    string   `json:"where"`              // host, or "later", "application"
	Text     string   `json:"text"`               // one sentence or two
	Commands []string `json:"commands,omitempty"` // for a shell there
}

// Swap compares one way of the link, measured by either end as the client.
type Swap struct {
	Way     string  `json:"way"`           // "here → there"
	Item    string  `json:"item"`          // e.g. "A2"
	Here    float64 `json:"here_bps"`      // median with this end as the client, payload bit/s
	There   float64 `json:"there_bps"`     // the same with the other end as the client
	Differs float64 `json:"differs_share"` // |here − there| / larger
	Result  string  `json:"result"`        // "pass", "inconclusive"
	Reason  string  `json:"reason"`        // one sentence
}

// CaptureCheck is what a capture made at a third point says of the runs.
type CaptureCheck struct {
	File    string        `json:"capture_file"`      // the capture's name
	Packets int64         `json:"capture_packets"`   // in the file
	Skipped int64         `json:"capture_unread"`    // of them not understood: no IP, fragments, cut short
	Cut     bool          `json:"capture_cut"`       // the file ends in the middle of a packet
	Flows   []CaptureFlow `json:"flows"`             // of the runs, in their order
	Missing []string      `json:"flows_not_in_file"` // labels of runs that the file has nothing of
}

// CaptureFlow is one direction of one run, as the third point saw it.
type CaptureFlow struct {
	Run       string  `json:"run_label"`           // label of the run
	Direction string  `json:"direction"`           // "up", "down"
	Packets   int64   `json:"seen_packets"`        // with payload
	Payload   int64   `json:"seen_payload_bytes"`  // of those packets, repeated ones too
	Unique    int64   `json:"seen_unique_bytes"`   // TCP: payload less what was seen again; UDP: the same as payload
	Again     int64   `json:"seen_again"`          // TCP: segments that repeat payload
	Gaps      int64   `json:"seen_gaps"`           // UDP: sequence numbers that did not come by
	Claimed   int64   `json:"claimed_bytes"`       // what the ends say of the same: sender's count
	Differs   float64 `json:"claim_differs_share"` // share by which payload seen and claimed differ
	Result    string  `json:"result"`              // "pass", "fail", "inconclusive"
	Reason    string  `json:"reason"`              // one sentence
}

// Criterion is one demand of an item, with what was measured.
type Criterion struct {
	Figure string `json:"demand"` // stable word, e.g. "throughput"
	Op     string `json:"op"`     // ">=" or "<="; "" = only reported
	// Bound is the limit, in Unit; Basis says what it was reckoned from ("90 % of ideal").
	Bound *float64 `json:"bound"`
	Basis string   `json:"bound_of,omitempty"` // what Bound was reckoned from, e.g. "90 % of ideal"
	Unit  string   `json:"unit"`               // "bit/s", "ratio", "s", ""
	// Value is the median of the rounds; nil = not known.
	Value  *float64  `json:"value"`
	Rounds []float64 `json:"round_values,omitempty"` // each round's figure, in their order
	Low    *float64  `json:"value_low,omitempty"`    // of the 95 % interval, or of the range of fewer than 6 rounds
	High   *float64  `json:"value_high,omitempty"`   // of the same
	Result string    `json:"result"`                 // "pass", "fail", "inconclusive"; "" = only reported
	Reason string    `json:"reason"`                 // one sentence with the numbers
}

// Check is something that was looked at besides the demands: what two counters say of the same
// bytes, or whether the ends are fit to measure.
type Check struct {
	Check  string `json:"check"`               // stable word, e.g. "tcp-bytes"
	Run    string `json:"run_label,omitempty"` // label of the run
	End    End    `json:"end,omitempty"`       // whose counters; absent = of both or neither
	Result string `json:"result"`              // "pass", "fail", "inconclusive"; "" = it could not be made, or is only told
	Text   string `json:"text"`                // one sentence with the numbers
}
