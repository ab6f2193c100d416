// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

var findingFields = newTable(
	str(semconv.ServiceName, func(f *model.Finding) *string { return &f.JobName }),
	str(semconv.JobID, func(f *model.Finding) *string { return &f.JobID }),
	str(semconv.JobIncarnation, func(f *model.Finding) *string { return &f.Incarnation }),

	str(semconv.FindingKind, func(f *model.Finding) *string { return &f.Kind }),
	str(semconv.FindingClass, func(f *model.Finding) *string { return &f.Class }),
	str(semconv.FindingCause, func(f *model.Finding) *string { return &f.Cause }),
	str(semconv.FindingID, func(f *model.Finding) *string { return &f.ID }),
	num(semconv.FindingRevision, func(f *model.Finding) *int64 { return &f.Revision }),
	str(semconv.FindingStatus, func(f *model.Finding) *string { return &f.Status }),
	num(semconv.FindingStart, func(f *model.Finding) *int64 { return &f.Start }),

	optInt(semconv.FindingRank, func(f *model.Finding) *optionalInt { return &f.Rank }),
	str(semconv.FindingHost, func(f *model.Finding) *string { return &f.Host }),
	str(semconv.FindingHWID, func(f *model.Finding) *string { return &f.HWID }),
	str(semconv.FindingOp, func(f *model.Finding) *string { return &f.Op }),
	str(semconv.FindingCommID, func(f *model.Finding) *string { return &f.CommID }),
	str(semconv.FindingCommName, func(f *model.Finding) *string { return &f.CommName }),
	optInt(semconv.FindingPeer, func(f *model.Finding) *optionalInt { return &f.Peer }),
	str(semconv.FindingLink, func(f *model.Finding) *string { return &f.Link }),
	str(semconv.FindingClockID, func(f *model.Finding) *string { return &f.Clock }),
	findingRanks(semconv.FindingRanks, func(f *model.Finding) (*[]int64, *optionalInt) { return &f.Ranks, &f.RanksCount }),
	findingCount(semconv.FindingRanksCount, func(f *model.Finding) (*optionalInt, []int64) { return &f.RanksCount, f.Ranks }),

	optInt(semconv.FindingStepFirst, func(f *model.Finding) *optionalInt { return &f.StepFirst }),
	optInt(semconv.FindingStepLast, func(f *model.Finding) *optionalInt { return &f.StepLast }),
	flag(semconv.FindingBeforeWindow, func(f *model.Finding) *bool { return &f.BeforeWindow }),

	optFloat(semconv.FindingCostSeconds, func(f *model.Finding) *optionalFloat { return &f.CostSeconds }),
	optFloat(semconv.FindingCostShare, func(f *model.Finding) *optionalFloat { return &f.CostShare }),
	optFloat(semconv.FindingCostJoint, func(f *model.Finding) *optionalFloat { return &f.CostJoint }),
	optFloat(semconv.FindingCostAtLeast, func(f *model.Finding) *optionalFloat { return &f.CostLeast }),
	optFloat(semconv.FindingCostAtMost, func(f *model.Finding) *optionalFloat { return &f.CostMost }),
	optFloat(semconv.FindingWaitCaused, func(f *model.Finding) *optionalFloat { return &f.WaitCaused }),
	optFloat(semconv.FindingWaitCausedShare, func(f *model.Finding) *optionalFloat { return &f.WaitCausedShare }),

	findingRanks(semconv.FindingWaiting, func(f *model.Finding) (*[]int64, *optionalInt) { return &f.Waiting, &f.WaitingCount }),
	findingCount(semconv.FindingWaitingCount, func(f *model.Finding) (*optionalInt, []int64) { return &f.WaitingCount, f.Waiting }),
	optInt(semconv.FindingWaitingThrough, func(f *model.Finding) *optionalInt { return &f.Through }),
	findingRanks(semconv.FindingCandidates, func(f *model.Finding) (*[]int64, *optionalInt) { return &f.Candidates, &f.CandidatesCount }),
	findingCount(semconv.FindingCandidatesCount, func(f *model.Finding) (*optionalInt, []int64) { return &f.CandidatesCount, f.Candidates }),
	long(semconv.FindingStack, func(f *model.Finding) *string { return &f.Stack }),

	float(semconv.FindingConfidence, func(f *model.Finding) *float64 { return &f.Confidence }),
	findingEvidence(),
	long(semconv.FindingAction, func(f *model.Finding) *string { return &f.Action }),
	findingLinks(),
	str(semconv.IncidentID, func(f *model.Finding) *string { return &f.IncidentID }),
)

// FindingAttributes returns a finding under the attribute names of the data
// model, as JSON-ready values: what a log record and a span of it carry, for
// readers without a collector.
func FindingAttributes(f *model.Finding) map[string]any {
	m := pcommon.NewMap()
	findingFields.write(f, m)
	return m.AsRaw()
}

// findingEvidence is JSON of at most cut.MaxLong bytes; what is read stays as it came.
func findingEvidence() field[model.Finding] {
	const name = semconv.FindingEvidence
	return field[model.Finding]{
		name: name,
		put: func(f *model.Finding, m pcommon.Map) {
			if text := evidence.Encode(f.Evidence); text != "" {
				m.PutStr(name, cut.Bytes(text, cut.MaxLong))
			}
		},
		get: func(f *model.Finding, v pcommon.Value) outcome {
			if v.Type() != pcommon.ValueTypeStr {
				return mistyped
			}
			text := cut.Bytes(v.Str(), cut.MaxLong)
			f.Evidence = evidence.FromText(text)
			if len(v.Str()) > cut.MaxLong {
				return shortened
			}
			return taken
		},
	}
}

// findingRanks is a list of ranks, cut where it is long; then their count is what says how many they are.
func findingRanks(name string, at func(*model.Finding) (*[]int64, *optionalInt)) field[model.Finding] {
	return field[model.Finding]{
		name: name,
		put: func(f *model.Finding, m pcommon.Map) {
			ranks, _ := at(f)
			if len(*ranks) == 0 {
				return
			}
			s := m.PutEmptySlice(name)
			for _, r := range (*ranks)[:min(len(*ranks), semconv.MaxFindingRanks)] {
				s.AppendEmpty().SetInt(r)
			}
		},
		get: func(f *model.Finding, v pcommon.Value) outcome {
			if v.Type() != pcommon.ValueTypeSlice {
				return mistyped
			}
			ranks, count := at(f)
			for _, e := range v.Slice().All() {
				if e.Type() != pcommon.ValueTypeInt {
					*ranks = nil
					return mistyped
				}
				if len(*ranks) < semconv.MaxFindingRanks {
					*ranks = append(*ranks, e.Int())
				}
			}
			if n := v.Slice().Len(); n > semconv.MaxFindingRanks {
				if !count.OK {
					*count = model.Some(int64(n))
				}
				return shortened
			}
			return taken
		},
	}
}

// findingCount states the exact count where the list had to be cut.
func findingCount(name string, at func(*model.Finding) (*optionalInt, []int64)) field[model.Finding] {
	f := optInt(name, func(f *model.Finding) *optionalInt {
		count, _ := at(f)
		return count
	})
	put := f.put
	f.put = func(f *model.Finding, m pcommon.Map) {
		put(f, m)
		if count, ranks := at(f); !count.OK && len(ranks) > semconv.MaxFindingRanks {
			m.PutInt(name, int64(len(ranks)))
		}
	}
	return f
}

// maxLinks bounds the evidence links of one finding: OpenTelemetry SDKs keep
// 128 links a span by default.
const maxLinks = 128

func findingLinks() field[model.Finding] {
	const name = semconv.FindingLinks
	return field[model.Finding]{
		name: name,
		put: func(f *model.Finding, m pcommon.Map) {
			if len(f.Links) == 0 {
				return
			}
			s := m.PutEmptySlice(name)
			for _, l := range f.Links[:min(len(f.Links), maxLinks)] {
				s.AppendEmpty().SetStr(l.String())
			}
		},
		get: func(f *model.Finding, v pcommon.Value) outcome {
			if v.Type() != pcommon.ValueTypeSlice {
				return mistyped
			}
			for _, e := range v.Slice().All() {
				ref, ok := parseRef(e)
				if !ok {
					f.Links = nil
					return mistyped
				}
				if len(f.Links) < maxLinks {
					f.Links = append(f.Links, ref)
				}
			}
			if v.Slice().Len() > maxLinks {
				return shortened
			}
			return taken
		},
	}
}

// parseRef is the inverse of model.SpanRef.String.
func parseRef(v pcommon.Value) (ref model.SpanRef, ok bool) {
	if v.Type() != pcommon.ValueTypeStr {
		return ref, false
	}
	return model.ParseSpanRef(v.Str())
}
