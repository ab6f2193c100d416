package straggler

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ordinalKey names a sequence that was counted by us, within one step.
type ordinalKey struct {
	comm, digest, name string
	step               int64
}

// resyncOrdinals mends the numbers of collectives that were counted within a
// step where ranks saw different numbers of them: a recording may begin or end
// inside a step. The shorter sequence is laid along the usual one where the
// bytes agree in exactly one place; else its operations lose their numbers,
// since a wrong partner is worse than none. It returns how many did.
func resyncOrdinals(views []*rankView) (lost int) {
	groups := map[ordinalKey]map[*rankView][]*model.Op{}
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			if op.Collective.SeqScope != model.ScopeOrdinal {
				continue
			}
			k := ordinalKey{comm: op.Comm.ID, digest: op.Comm.Digest, name: op.Collective.Name, step: op.Step.Or(0)}
			if groups[k] == nil {
				groups[k] = map[*rankView][]*model.Op{}
			}
			groups[k][v] = append(groups[k][v], op)
		}
	}
	for _, g := range groups {
		lost += resync(g)
	}
	return lost
}

func resync(g map[*rankView][]*model.Op) (lost int) {
	usual := usualSequence(g)
	for _, ops := range g {
		if len(ops) == len(usual) {
			continue
		}
		shift, ok := uniqueShift(ops, usual)
		for _, op := range ops {
			if !ok {
				op.Collective.Seq = model.Optional[int64]{}
				lost++
				continue
			}
			op.Collective.Seq.V += shift
		}
	}
	return lost
}

// usualSequence returns the sequence of the most frequent length, the longer of
// two that are equally frequent.
func usualSequence(g map[*rankView][]*model.Op) []*model.Op {
	count := map[int]int{}
	for _, ops := range g {
		count[len(ops)]++
	}
	var best []*model.Op
	for _, ops := range g {
		n, m := len(ops), len(best)
		if best == nil || count[n] > count[m] || (count[n] == count[m] && n > m) {
			best = ops
		}
	}
	return best
}

// maxShift bounds the search: a step with more collectives than this of one
// kind is not resynchronised.
const maxShift = 4096

// uniqueShift returns what must be added to the numbers of ops so that they
// agree in bytes with usual; false unless exactly one shift does.
func uniqueShift(ops, usual []*model.Op) (int64, bool) {
	diff := len(usual) - len(ops)
	lo, hi := min(0, diff), max(0, diff)
	if hi-lo > maxShift {
		return 0, false
	}
	found, shift := 0, 0
	for s := lo; s <= hi; s++ {
		if agree(ops, usual, s) {
			found++
			shift = s
		}
	}
	return int64(shift), found == 1
}

func agree(ops, usual []*model.Op, shift int) bool {
	for i, op := range ops {
		if k := i + shift; k >= 0 && k < len(usual) {
			a, b := op.Collective.Bytes, usual[k].Collective.Bytes
			if !a.OK || !b.OK || a.V != b.V {
				return false
			}
		}
	}
	return !slices.ContainsFunc(ops, func(op *model.Op) bool { return !op.Collective.Seq.OK })
}
