// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

func finding(class string, rank int64) desync.Root {
	return desync.Root{Finding: model.Finding{Class: class, Rank: model.Some(rank)}}
}

func several(class string, ranks ...int64) desync.Root {
	return desync.Root{Finding: model.Finding{Class: class, Ranks: ranks}}
}

func candidates(ranks ...int64) desync.Root {
	return desync.Root{Finding: model.Finding{Class: model.ClassIncompleteEvidence, Candidates: ranks}}
}

// bed has ranks 0 to 7, of which 7 is not seen.
func bed(faults ...hang.Fault) *bench {
	b := &bench{world: 8, seen: map[int64]bool{}, whole: map[int64]bool{}, truth: hang.Truth{Faults: faults}}
	for r := range int64(7) {
		b.seen[r], b.whole[r] = true, true
	}
	return b
}

func judged(b *bench, roots ...desync.Root) Outcome { return b.judge(&desync.Report{Roots: roots}) }

func TestJudge(t *testing.T) {
	all := []int64{0, 1, 2, 3, 4, 5, 6, 7}
	stuck := hang.Fault{Family: hang.HostStuck, Ranks: []int64{3}, Concerned: all}
	unseen := hang.Fault{Family: hang.HostStuck, Ranks: []int64{7}, Concerned: all}
	stalled := hang.Fault{Family: hang.StalledOp, Ranks: []int64{3}, Concerned: []int64{2, 3}, Blameless: true}
	size := hang.Fault{Family: hang.WrongSize, Ranks: []int64{3}, Concerned: []int64{0, 1, 2, 3}}
	pair := hang.Fault{Family: hang.WrongSize, Ranks: []int64{3}, Concerned: []int64{2, 3}}
	letter := hang.Fault{Family: hang.WrongMessage, Ranks: []int64{3}, Concerned: []int64{1, 2, 3}, Blameless: true}
	cycle := hang.Fault{Family: hang.SwappedGroups, Ranks: []int64{3}, Concerned: []int64{2, 3}, Cycle: true}
	for _, c := range []struct {
		name   string
		faults []hang.Fault
		roots  []desync.Root
		want   Outcome
	}{
		{"told", []hang.Fault{stuck}, []desync.Root{finding(model.ClassNotScheduled, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"a victim", []hang.Fault{stuck}, []desync.Root{finding(model.ClassNotScheduled, 2)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"a victim beside", []hang.Fault{stuck}, []desync.Root{several(model.ClassNotScheduled, 2, 3)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"another class", []hang.Fault{stuck}, []desync.Root{finding(model.ClassCompletionLag, 3)}, Outcome{1, 0, 0, []Fate{Wronged}, 0}},
		{"missing, though seen", []hang.Fault{stuck}, []desync.Root{finding(model.ClassDumpMissing, 3)}, Outcome{1, 0, 0, []Fate{Wronged}, 0}},
		{"missing", []hang.Fault{unseen}, []desync.Root{finding(model.ClassDumpMissing, 7)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"missing, at no fault", []hang.Fault{stuck}, []desync.Root{finding(model.ClassDumpMissing, 7)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"among candidates", []hang.Fault{unseen}, []desync.Root{candidates(1, 7)}, Outcome{0, 0, 0, []Fate{Candidate}, 2}},
		{"not among candidates", []hang.Fault{unseen}, []desync.Root{candidates(1, 2)}, Outcome{0, 0, 0, []Fate{Silent}, 2}},
		{"silent", []hang.Fault{stuck}, nil, Outcome{0, 0, 0, []Fate{Silent}, 0}},
		{"one of two", []hang.Fault{stuck, unseen}, []desync.Root{finding(model.ClassNotScheduled, 3), candidates(7)}, Outcome{1, 1, 0, []Fate{Told, Candidate}, 1}},
		{"one of two, the other not named at all", []hang.Fault{stuck, unseen}, []desync.Root{finding(model.ClassNotScheduled, 3)}, Outcome{1, 1, 0, []Fate{Told, Silent}, 0}},
		{"nobody at fault", []hang.Fault{stalled}, []desync.Root{several(model.ClassStalledOp, 2, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"nobody at fault, one blamed", []hang.Fault{stalled}, []desync.Root{finding(model.ClassStalledOp, 3)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"the odd one", []hang.Fault{size}, []desync.Root{finding(model.ClassMismatchSize, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"all of a group, though three agree", []hang.Fault{size}, []desync.Root{several(model.ClassMismatchSize, 0, 1, 2, 3)}, Outcome{1, 0, 3, []Fate{Wronged}, 0}},
		{"both sides", []hang.Fault{pair}, []desync.Root{several(model.ClassMismatchSize, 2, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"one side, the wrong one", []hang.Fault{pair}, []desync.Root{finding(model.ClassMismatchSize, 2)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"the circle", []hang.Fault{cycle}, []desync.Root{several(model.ClassOrderCycle, 2, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"more than the circle", []hang.Fault{cycle}, []desync.Root{several(model.ClassOrderCycle, 2, 3, 4)}, Outcome{1, 0, 1, []Fate{Wronged}, 0}},
		{"both in one finding", []hang.Fault{stuck, {Family: hang.HostStuck, Ranks: []int64{5}}}, []desync.Root{several(model.ClassNotScheduled, 3, 5)}, Outcome{1, 1, 0, []Fate{Told, Told}, 0}},
		{"both sides as candidates", []hang.Fault{pair}, []desync.Root{{Finding: model.Finding{Class: model.ClassMismatchSize, Candidates: []int64{2, 3}}}}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"both sides of a message", []hang.Fault{letter}, []desync.Root{several(model.ClassMismatchSize, 2, 3)}, Outcome{1, 1, 0, []Fate{Told}, 0}},
		{"missing, and nobody named", []hang.Fault{unseen}, []desync.Root{{Finding: model.Finding{Class: model.ClassDumpMissing, Candidates: []int64{7}}}}, Outcome{0, 0, 0, []Fate{Candidate}, 1}},
		{"healthy", nil, nil, Outcome{}},
		{"healthy, accused", nil, []desync.Root{finding(model.ClassNotScheduled, 1)}, Outcome{1, 0, 1, nil, 0}},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, judged(bed(c.faults...), c.roots...)) })
	}
}

// A second fault of which no dump is left is hidden where the report names who left none.
func TestHidden(t *testing.T) {
	b := bed(hang.Fault{Family: hang.HostStuck, Ranks: []int64{3}}, hang.Fault{Family: hang.HostStuck, Ranks: []int64{7}})
	rep := &desync.Report{Roots: []desync.Root{finding(model.ClassNotScheduled, 3)}, Absent: []model.Absence{{Rank: 7}}}
	assert.Equal(t, []Fate{Told, Hidden}, b.judge(rep).Faults)
	lone := bed(hang.Fault{Family: hang.ExtraOp, Ranks: []int64{3}, Concerned: []int64{3, 7}})
	assert.Equal(t, []Fate{Hidden}, judged(lone, candidates(7)).Faults)
	assert.Equal(t, []Fate{Silent}, judged(lone, candidates(2)).Faults)
	lone.seen[7] = true
	assert.Equal(t, []Fate{Silent}, judged(lone, candidates(7)).Faults)
	rep.Roots = nil
	assert.Equal(t, []Fate{Silent, Silent}, b.judge(rep).Faults)
}

// What is read of a whole dump is what the job has open, whoever made it.
func TestReadingKeepsWhatIsOpen(t *testing.T) {
	thin := tier.Thin{Every: 5}
	for _, l := range hang.Layouts {
		for _, family := range []string{hang.HostStuck, hang.DeviceStopped, hang.StalledOp, hang.NoRecv} {
			j, err := hang.Run(l, family, 7)
			if err != nil {
				require.ErrorIs(t, err, hang.ErrNoPlace)
				continue
			}
			for _, evidence := range []string{"whole", "json", "only_active"} {
				if thin.Skips(t) {
					continue
				}
				in, err := read(j, hang.Evidences[evidence], 7, true)
				require.NoError(t, err)
				require.Len(t, in.States, l.World())
				for i := range in.States {
					s := &in.States[i]
					var got []string
					for k := range s.Ops {
						if o := &s.Ops[k]; !o.Done {
							got = append(got, s.Comms[o.Comm].Comm.Name+" "+string(o.Kind))
						}
					}
					var want []string
					for _, o := range j.Open(int(s.Rank.Rank), s.Time) {
						want = append(want, o.Desc+" "+kindOf(o.Name))
					}
					assert.ElementsMatch(t, want, got, "%s %s %s rank %d", l.Name, family, evidence, s.Rank.Rank)
				}
			}
		}
	}
}

func kindOf(name string) string {
	switch name {
	case "send":
		return string(model.KindSend)
	case "recv":
		return string(model.KindRecv)
	}
	return string(model.KindCollective)
}
