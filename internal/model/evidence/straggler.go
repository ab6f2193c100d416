// SPDX-License-Identifier: Apache-2.0

package evidence

// Methods by which stragglers are named: the values of Straggler.Method and Link.Method.
const (
	MethodLockstep = "lockstep"
	MethodKAIR     = "kair"
)

// Straggler is the JSON of lockstep.finding.evidence of kind straggler. Seconds
// are per step where not said otherwise.
type Straggler struct {
	Method        string             `json:"method"`
	Steps         int                `json:"steps"` // judged, of those in which it holds
	Meetings      int                `json:"meetings"`
	LastArrivals  int                `json:"last_arrivals"`
	WaitAll       float64            `json:"wait_all_seconds"`
	WaitLeast     *float64           `json:"wait_caused_at_least_seconds,omitempty"`
	FalseAlarm    float64            `json:"false_alarm"`
	Undivided     bool               `json:"host_or_device,omitempty"`
	Trials        string             `json:"trials"` // "step" or "meeting"
	Excess        float64            `json:"excess_seconds"`
	ExcessMean    float64            `json:"excess_mean_seconds"`
	ExcessCompute float64            `json:"excess_compute_seconds"` // of the segments
	ExcessHost    float64            `json:"excess_host_seconds"`
	ExcessShare   float64            `json:"excess_share"`
	Intermittent  bool               `json:"intermittent,omitempty"`
	Steadiness    float64            `json:"steadiness"`
	BeforeWindow  float64            `json:"before_window_share"`
	Decisive      *Decisive          `json:"decisive,omitempty"`
	NextRanks     []int64            `json:"next_ranks"`
	PlaceExcess   *float64           `json:"place_excess_seconds"`
	CostBy        string             `json:"cost_by"`
	CostBeside    float64            `json:"cost_once_others_are_mended_seconds,omitempty"`
	CostLeast     *float64           `json:"cost_at_least_seconds,omitempty"`
	CostMost      float64            `json:"cost_at_most_seconds,omitempty"`
	Lost          float64            `json:"lost_share,omitempty"` // of its operations
	CohortRung    string             `json:"cohort_rung"`
	Peers         int                `json:"peers"`
	BlameShare    float64            `json:"blame_share,omitempty"` // of the steps' time, on the critical path, over its peers
	BlameOp       string             `json:"blame_op,omitempty"`
	Pauses        *Pauses            `json:"pauses,omitempty"`
	Numbers       map[string]float64 `json:"numbers,omitempty"`
	MissingRanks  []int64            `json:"missing_ranks,omitempty"` // the first 64
	MissingCount  int                `json:"missing_ranks_count,omitempty"`
	ClockSigma    float64            `json:"clock_sigma_seconds"`
	LoweredBy     []string           `json:"confidence_lowered_by,omitempty"`
}

// Decisive is the meeting in which the ranks named caused most wait.
type Decisive struct {
	Step       int64   `json:"step"`
	Collective string  `json:"collective"`
	Comm       string  `json:"comm_id"`
	Wait       float64 `json:"wait_seconds"`
	Gap        float64 `json:"gap_to_second_last_seconds"`
}

// Pauses is the law of pauses: how long, how often, how regular.
type Pauses struct {
	Median  float64 `json:"median_seconds"`
	P95     float64 `json:"p95_seconds"`
	PerRank float64 `json:"per_rank_and_step"`
	Period  float64 `json:"period_steps"` // 0 where they are irregular
	Ranks   int     `json:"ranks"`        // that paused
}

// StragglerOf returns the numbers of a finding of kind straggler: of a Link those that both structs
// have. It returns false where As does, with no numbers.
func StragglerOf(e Evidence) (*Straggler, bool) {
	if l, ok := e.(*Link); ok {
		return l.straggler(), true
	}
	s, ok := As[Straggler](e)
	if !ok {
		s = &Straggler{}
	}
	return s, ok
}

func (l *Link) straggler() *Straggler {
	d := &l.Decisive
	return &Straggler{
		Method: l.Method, Steps: l.Steps, FalseAlarm: l.FalseAlarm, Trials: l.Trials, ExcessShare: l.ExcessShare, Steadiness: l.Steadiness,
		Decisive: &Decisive{Step: d.Step, Collective: d.Collective, Comm: d.Comm}, CostBy: l.CostBy, Numbers: l.Numbers,
		CohortRung: l.CohortRung, Peers: l.Peers, MissingRanks: l.MissingRanks, MissingCount: l.MissingCount, LoweredBy: l.LoweredBy,
	}
}
