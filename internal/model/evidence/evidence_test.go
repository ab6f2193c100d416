// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pointer returns a pointer to a copy.
func pointer[T any](v T) *T { return &v }

// decoders read a text as each kind, by its name in docs/format/evidence.md.
var decoders = map[string]func(Evidence) (Evidence, bool){
	"Checkpoint": decoder[Checkpoint], "Clock": decoder[Clock], "Fleet": decoder[Fleet], "Hang": decoder[Hang], "Held": decoder[Held],
	"Link": decoder[Link], "LogLine": decoder[LogLine], "Replica": decoder[Replica], "Resume": decoder[Resume], "Straggler": decoder[Straggler],
}

func decoder[T any, P kind[T]](e Evidence) (Evidence, bool) {
	out, ok := As[T, P](e)
	return P(out), ok
}

// wire has evidence of each kind with the JSON that readers of findings know: keys and their order do
// not change.
var wire = map[string]struct {
	e    Evidence
	text string
}{
	"a mixed checkpoint": {&Checkpoint{
		Save: 20, Generation: "g", Held: []CheckpointHeld{{10, 6, "model rank 0"}, {20, 2, ""}}, Domains: 8,
		Missing: []CheckpointMissing{{"rng rank 7", "absent"}}, MissingCount: 1, Frontier: pointer[int64](10),
	}, `{"save":20,"generation":"g","held":[{"epoch":10,"domains":6,"first":"model rank 0"},{"epoch":20,"domains":2}],"domains":8,` +
		`"missing":[{"domain":"rng rank 7","state":"absent"}],"missing_count":1,"frontier":10}`},
	"an empty checkpoint": {&Checkpoint{}, `{"save":0,"domains":0}`},
	"a clock that is off": {&Clock{
		Timeline: "t", Offset: 0.5, Bound: 0.25, Threshold: 0.125, Walls: 3, Raws: 2, Other: "c", Undecided: true,
	}, `{"timeline":"t","offset_seconds":0.5,"bound_seconds":0.25,"threshold_seconds":0.125,"realtime_clocks":3,"raw_clocks":2,"other":"c","undecided":true}`},
	"a clock that drifts": {&Clock{Drift: 900, DriftBound: 1, Limit: 500}, `{"drift_ppm":900,"drift_bound_ppm":1,"limit_ppm":500}`},
	"a clock that stepped": {&Clock{
		Jump: -2, Steps: 1, Contradicts: []Contradiction{{"c", "owd", 1.5}},
	}, `{"jump_seconds":-2,"steps":1,"contradicts":[{"clock":"c","source":"owd","excess_seconds":1.5}]}`},
	"a fleet": {&Fleet{
		Domain: "nccl", Model: "m", Held: []FleetHeld{{[]string{"2.19"}, 1, 8, "n1"}, {nil, 0, 0, ""}}, Ranks: 9, Known: 8, Hosts: []string{"n2"}, Covers: 3,
	}, `{"domain":"nccl","model":"m","held":[{"versions":["2.19"],"nodes":1,"ranks":8,"first_host":"n1"},{"versions":null,"nodes":0,"ranks":0}],` +
		`"ranks":9,"known":8,"minority_hosts":["n2"],"covered_communicators":3}`},
	"a hang": {&Hang{
		Ranks: pointer(3), World: 4, Absent: 1, Members: 4, Joined: 2, Done: 1, Missing: 1, Unknown: 1, Idle: 1, Inferred: true, Lag: 7,
		Want: "a", Got: "b", Sent: 8, Received: 9, Victims: pointer(0), Witness: "w", Order: []string{"o"}, Notes: []string{"<n>"},
		Processes: []string{"p"}, Launched: "l",
	}, `{"ranks_seen":3,"world_size":4,"ranks_absent":1,"members":4,"members_in_it":2,"members_through":1,"members_not_come":1,"members_unknown":1,` +
		`"members_not_started":1,"members_inferred":true,"behind_operations":7,"most_called":"a","called":"b","elements_sent":8,"elements_received":9,` +
		`"ranks_waiting":0,"witness":"w","order":["o"],"notes":["\u003cn\u003e"],"processes":["p"],"launched":"l"}`},
	"a hang with notes of logs": {(&Hang{
		Ranks: pointer(3), Members: 4, Victims: pointer(2), Notes: []string{"had"},
	}).WithNotes([]string{"new"}), `{"members":4,"notes":["new","had"],"ranks_seen":3,"ranks_waiting":2}`},
	"a hang that logs alone show": {(*Hang)(nil).WithNotes([]string{"new"}), `{"notes":["new"]}`},
	"a hang that is watched": {
		(&Hang{
			Ranks: pointer(3), World: 4, Victims: pointer(2),
		}).WithWatch("live", &StallLimit{Limit: 2, Stood: 4.5}),
		`{"limit_of_phase":"","ranks_seen":3,"ranks_waiting":2,"stall_limit_seconds":2,"stood_seconds":4.5,"watched":"live","world_size":4}`,
	},
	"a hang that dumps show": {(*Hang)(nil).WithWatch("dumps", nil), `{"watched":"dumps"}`},
	"a process that is held": {&Held{
		Seconds: 12.5, PID: pointer[int64](4711), Process: "stopped", StallLimit: 30, Waited: 11, Watched: "process",
	}, `{"held_seconds":12.5,"pid":4711,"process":"stopped","stall_limit_seconds":30,"waited_seconds":11,"watched":"process"}`},
	"a link": {&Link{
		Method: "lockstep", Steps: 9, FalseAlarm: 1e-9, Trials: "step", ExcessWire: 0.5, ExcessShare: 0.25, Steadiness: 4,
		Decisive: LinkDecisive{7, "all_reduce", "c", 0.5, 24, 0.125, 0.0625, 2}, CostBy: "b", Numbers: map[string]float64{"z": 1, "a": 2},
		CohortRung: "r", Peers: 3, MissingRanks: []int64{5}, MissingCount: 1, LoweredBy: []string{"x"},
	}, `{"method":"lockstep","steps":9,"false_alarm":1e-9,"trials":"step","excess_wire_seconds":0.5,"excess_share":0.25,"steadiness":4,` +
		`"decisive":{"step":7,"collective":"all_reduce","comm_id":"c","wire_wait_seconds":0.5,"wire_steps":24,"wire_wait_per_step_seconds":0.125,` +
		`"peers_wire_wait_per_step_seconds":0.0625,"transfer_seconds":2},"cost_by":"b","numbers":{"a":2,"z":1},"cohort_rung":"r","peers":3,` +
		`"missing_ranks":[5],"missing_ranks_count":1,"confidence_lowered_by":["x"]}`},
	"a line of a log": {&LogLine{
		Pattern: "p", Line: "l", Time: "t", Said: map[string]string{"version": "2", "rank": "1"}, Lines: 2, Hosts: []string{"n"}, Ranks: []int64{3}, More: true,
	}, `{"pattern":"p","line":"l","time":"t","said":{"rank":"1","version":"2"},"lines":2,"hosts":["n"],"ranks":[3],"more":true}`},
	"replicas": {&Replica{
		Group: "g", Step: 4, Start: 1, Total: 9, Slices: 2, Held: []ValueHeld{{"0f", 3, []int64{0, 1}}}, Hashes: 2, Told: 4, Replicas: 4, Decided: true,
		Hosts: []string{"n"}, GPUs: []string{"u"},
	}, `{"group":"g","step":4,"start":1,"total":9,"slices":2,"held":[{"value":"0f","count":3,"ranks":[0,1]}],"hashes":2,"told":4,"replicas":4,` +
		`"decided":true,"minority_hosts":["n"],"minority_gpus":["u"]}`},
	"a resume": {&Resume{
		Fields:      []ResumeField{{Name: "step", Replica: "r", Held: []ValueHeld{{"12", 1, nil}}, Values: 2, Told: 3, Decided: true}},
		FieldsCount: 1, Ranks: 3, Of: 4, Apart: 1, Hosts: []string{"n"},
	}, `{"fields":[{"name":"step","replica":"r","held":[{"value":"12","count":1,"ranks":null}],"values":2,"told":3,"decided":true}],"fields_count":1,` +
		`"ranks":3,"of":4,"apart":1,"minority_hosts":["n"]}`},
	"a straggler": {&Straggler{
		Method: "lockstep", Steps: 64, Meetings: 3, LastArrivals: 2, WaitAll: 0.5, WaitLeast: pointer(0.0), FalseAlarm: 1e-9, Undivided: true, Trials: "step",
		Excess: 0.5, ExcessMean: 0.25, ExcessCompute: 0.125, ExcessHost: 0.0625, ExcessShare: 0.5, Intermittent: true, Steadiness: 4, BeforeWindow: 1,
		Decisive: &Decisive{7, "all_reduce", "c", 0.5, 0.25}, NextRanks: []int64{1}, PlaceExcess: pointer(0.0), CostBy: "b", CostBeside: 0.5,
		CostLeast: pointer(0.0), CostMost: 2, Lost: 0.5, CohortRung: "r", Peers: 7, BlameShare: 0.5, BlameOp: "o", Pauses: &Pauses{0.5, 1, 2, 12, 4},
		Numbers: map[string]float64{"z": 1}, MissingRanks: []int64{5}, MissingCount: 1, ClockSigma: 0.5, LoweredBy: []string{"x"},
	}, `{"method":"lockstep","steps":64,"meetings":3,"last_arrivals":2,"wait_all_seconds":0.5,"wait_caused_at_least_seconds":0,"false_alarm":1e-9,` +
		`"host_or_device":true,"trials":"step","excess_seconds":0.5,"excess_mean_seconds":0.25,"excess_compute_seconds":0.125,"excess_host_seconds":0.0625,` +
		`"excess_share":0.5,"intermittent":true,"steadiness":4,"before_window_share":1,"decisive":{"step":7,"collective":"all_reduce","comm_id":"c",` +
		`"wait_seconds":0.5,"gap_to_second_last_seconds":0.25},"next_ranks":[1],"place_excess_seconds":0,"cost_by":"b",` +
		`"cost_once_others_are_mended_seconds":0.5,"cost_at_least_seconds":0,"cost_at_most_seconds":2,"lost_share":0.5,"cohort_rung":"r","peers":7,` +
		`"blame_share":0.5,"blame_op":"o","pauses":{"median_seconds":0.5,"p95_seconds":1,"per_rank_and_step":2,"period_steps":12,"ranks":4},` +
		`"numbers":{"z":1},"missing_ranks":[5],"missing_ranks_count":1,"clock_sigma_seconds":0.5,"confidence_lowered_by":["x"]}`},
	"a straggler of which little is known": {
		&Straggler{PlaceExcess: pointer(1.0)},
		`{"method":"","steps":0,"meetings":0,"last_arrivals":0,"wait_all_seconds":0,"false_alarm":0,"trials":"","excess_seconds":0,"excess_mean_seconds":0,` +
			`"excess_compute_seconds":0,"excess_host_seconds":0,"excess_share":0,"steadiness":0,"before_window_share":0,"next_ranks":null,` +
			`"place_excess_seconds":1,"cost_by":"","cohort_rung":"","peers":0,"clock_sigma_seconds":0}`,
	},
}

func TestEncode_EachKind_HasTheKeysThatReadersKnow(t *testing.T) {
	seen := map[string]bool{}
	for name, tc := range wire {
		assert.Equal(t, tc.text, Encode(tc.e), name)
		seen[reflect.TypeOf(tc.e).Elem().Name()] = true
	}
	assert.Len(t, seen, len(decoders), "each kind is here")
}

func TestAs_EachKind_ReadsWhatItWrote(t *testing.T) {
	for name, tc := range wire {
		decode := decoders[reflect.TypeOf(tc.e).Elem().Name()]
		same, ok := decode(tc.e)
		assert.True(t, ok && same == tc.e, name)
		read, ok := decode(Text(tc.text))
		require.True(t, ok, name)
		if h, is := read.(*Hang); is {
			h.sorted = tc.e.(*Hang).sorted
		}
		assert.Equal(t, tc.e, read, name)
	}
}

func TestAs_WhatItDoesNotKnow(t *testing.T) {
	for name, tc := range map[string]struct {
		e  Evidence
		ok bool
	}{
		"nothing":                      {nil, false},
		"another kind":                 {&Clock{}, false},
		"an empty text":                {Text(""), false},
		"no JSON":                      {Text("free text"), false},
		"JSON that is cut":             {Text(`{"ranks_seen":3,"notes":["a`), false},
		"more behind the JSON":         {Text(`{"ranks_seen":3}{}`), false},
		"a list":                       {Text(`[{"ranks_seen":3}]`), false},
		"another type":                 {Text(`{"ranks_seen":"3"}`), false},
		"as deep as a stack":           {Text(`{"notes":` + strings.Repeat("[", 1<<16)), false},
		"a later version":              {Text(`{"version":2,"ranks_seen":3}`), false},
		"a version of another type":    {Text(`{"ranks_seen":3,"version":"1"}`), false},
		"no version":                   {Text(`{"version":null,"ranks_seen":3}`), false},
		"this version":                 {Text(`{"version":1,"ranks_seen":3}`), true},
		"a version that is not theirs": {Text(`{"ranks_seen":3,"said":{"version":2}}`), true},
		"keys that are not known":      {Text(`{"ranks_seen":3,"later":[1,{"a":2}]}`), true},
	} {
		h, ok := As[Hang](tc.e)
		assert.Equal(t, tc.ok, ok, name)
		if tc.ok {
			assert.Equal(t, 3, *h.Ranks, name)
		}
	}
}

func TestEncode_Text_IsAsItCame(t *testing.T) {
	for _, text := range []string{"", "free text", `{ "later" : 1, "ranks_seen":3 }`, `{"version":2}`, "\xff\x00", `{"a":"<"}`} {
		assert.Equal(t, text, Encode(Text(text)))
		assert.Equal(t, text, Encode(FromText(text)))
	}
	assert.Empty(t, Encode(nil))
	assert.Nil(t, FromText(""))
}

func TestEncode_NumbersThatJSONDoesNotHave_AreLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := &Straggler{
		Method: "lockstep", Excess: nan, Steadiness: inf, CostLeast: &nan, PlaceExcess: pointer(2.0), Decisive: &Decisive{Wait: inf, Step: 7},
		Numbers: map[string]float64{"bad": nan, "good": 2},
	}
	read, ok := As[Straggler](Text(Encode(s)))
	require.True(t, ok)
	assert.Equal(t, &Straggler{
		Method: "lockstep", PlaceExcess: pointer(2.0), Decisive: &Decisive{Step: 7}, Numbers: map[string]float64{"good": 2},
	}, read)
	assert.True(t, math.IsNaN(s.Excess) && math.IsInf(s.Decisive.Wait, 1) && len(s.Numbers) == 2, "the evidence itself stays")

	h := (&Hang{Members: 4}).WithWatch("live", &StallLimit{Limit: inf, Stood: 3})
	assert.JSONEq(t, `{"members":4,"watched":"live","stall_limit_seconds":0,"stood_seconds":3,"limit_of_phase":""}`, Encode(h))
	c := &Clock{Contradicts: []Contradiction{{"c", "owd", nan}}}
	assert.JSONEq(t, `{"contradicts":[{"clock":"c","source":"owd","excess_seconds":0}]}`, Encode(c))
	assert.True(t, math.IsNaN(c.Contradicts[0].Excess))
}

func TestHang_WhatIsAdded_ChangesACopy(t *testing.T) {
	h := &Hang{Notes: []string{"had"}}
	noted := h.WithNotes([]string{"new"})
	watched := noted.WithWatch("live", &StallLimit{Limit: 2})
	assert.Equal(t, &Hang{Notes: []string{"had"}}, h)
	assert.Empty(t, noted.Watched)
	assert.Equal(t, []string{"new", "had"}, watched.Notes)
}

func TestStragglerOf_Link_HasWhatBothHave(t *testing.T) {
	l := wire["a link"].e.(*Link)
	of, ok := StragglerOf(l)
	require.True(t, ok)
	read, ok := StragglerOf(Text(Encode(l)))
	require.True(t, ok)
	assert.Equal(t, read, of, "the same as of its text")
	assert.Equal(t, []int64{5}, of.MissingRanks)

	of, ok = StragglerOf(&Clock{Steps: 3})
	assert.False(t, ok)
	assert.Equal(t, &Straggler{}, of)
}

func TestBytes_CountsWhatEvidenceHolds(t *testing.T) {
	assert.Zero(t, Bytes(nil))
	assert.Equal(t, 7, Bytes(Text("seven b")))
	for name, tc := range wire {
		assert.GreaterOrEqual(t, Bytes(tc.e), int(reflect.TypeOf(tc.e).Elem().Size()), name)
	}
	text := strings.Repeat("x", 1000)
	for name, e := range map[string]Evidence{
		"in a list":     &Hang{Notes: []string{text}},
		"in a struct":   &Straggler{Decisive: &Decisive{Collective: text}},
		"in a map":      &LogLine{Said: map[string]string{"a": text}},
		"as a key":      &Straggler{Numbers: map[string]float64{text: 1}},
		"deep in lists": &Resume{Fields: []ResumeField{{Held: []ValueHeld{{Value: text}}}}},
		"numbers":       &Resume{Fields: []ResumeField{{Held: []ValueHeld{{Ranks: make([]int64, 125)}}}}},
	} {
		without := int(reflect.TypeOf(e).Elem().Size())
		assert.GreaterOrEqual(t, Bytes(e), 1000+without, name)
		assert.Less(t, Bytes(e), 1500+without, name)
	}
}
