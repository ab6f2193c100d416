// SPDX-License-Identifier: Apache-2.0

package evidence

// Link is the JSON of lockstep.finding.evidence of class link. Seconds
// are per step where not said otherwise.
type Link struct {
	Method       string             `json:"method"`
	Steps        int                `json:"steps"`
	FalseAlarm   float64            `json:"false_alarm"`
	Trials       string             `json:"trials"`
	ExcessWire   float64            `json:"excess_wire_seconds"` // of the operations' duration
	ExcessShare  float64            `json:"excess_share"`        // of the rank's exposed transfer
	Steadiness   float64            `json:"steadiness"`
	Decisive     LinkDecisive       `json:"decisive"`
	CostBy       string             `json:"cost_by"`
	Numbers      map[string]float64 `json:"numbers,omitempty"`
	CohortRung   string             `json:"cohort_rung"`
	Peers        int                `json:"peers"` // that sent, too: in the decisive meeting, or in its place of the step
	MissingRanks []int64            `json:"missing_ranks,omitempty"`
	MissingCount int                `json:"missing_ranks_count,omitempty"`
	LoweredBy    []string           `json:"confidence_lowered_by,omitempty"`
}

// LinkDecisive is the meeting in which the link cost most.
type LinkDecisive struct {
	Step       int64   `json:"step"`
	Collective string  `json:"collective"`
	Comm       string  `json:"comm_id"`
	Wire       float64 `json:"wire_wait_seconds"` // the rank's, as summed by the source
	Steps      int64   `json:"wire_steps"`        // proxy steps that it sent
	PerStep    float64 `json:"wire_wait_per_step_seconds"`
	PeersStep  float64 `json:"peers_wire_wait_per_step_seconds"` // median of the other senders'
	Transfer   float64 `json:"transfer_seconds"`                 // exposed, of the rank
}
