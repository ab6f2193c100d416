package straggler

import (
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ordinalKey names a sequence that was counted by us, within one step.
type ordinalKey struct {
	comm, digest, name string
	step               int64
}

// resyncOrdinals mends the numbers of collectives that were counted within a
// step where ranks did not see the same ones: a recording may begin or end inside
// a step. A rank's sequence is laid along the usual one where the bytes agree in
// exactly one place; else its operations lose their numbers, since a wrong
// partner is worse than none. It returns how many did. Messages are counted per
// direction and peer, and not mended.
func resyncOrdinals(views []*rankView) (lost int) {
	groups := map[ordinalKey][][]*model.Op{} // by rank, in order
	owner := map[ordinalKey]*rankView{}      // of the last sequence
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			if op.Collective.SeqScope != model.ScopeOrdinal || op.Kind != model.KindCollective {
				continue
			}
			k := ordinalKey{comm: op.Comm.ID, digest: op.Comm.Digest, name: op.Collective.Name, step: op.Step.Or(0)}
			if owner[k] != v {
				groups[k] = append(groups[k], nil)
				owner[k] = v
			}
			last := len(groups[k]) - 1
			groups[k][last] = append(groups[k][last], op)
		}
	}
	for _, sequences := range groups {
		lost += resync(sequences)
	}
	return lost
}

func resync(sequences [][]*model.Op) (lost int) {
	usual := usualSequence(sequences)
	for _, ops := range sequences {
		if len(ops) == len(usual) && !contradicts(ops, usual) {
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

// contradicts reports whether sequences of one length differ in bytes that must
// be equal.
func contradicts(ops, usual []*model.Op) bool {
	for i, op := range ops {
		a, b := op.Collective.Bytes, usual[i].Collective.Bytes
		if sameBytes(op.Collective.Name) && a.OK && b.OK && a.V != b.V {
			return true
		}
	}
	return false
}

// usualSequence returns the sequence that most ranks have, in length and in
// bytes; of equally frequent ones the longer, then the first.
func usualSequence(sequences [][]*model.Op) []*model.Op {
	count := map[string]int{}
	for _, ops := range sequences {
		count[fingerprint(ops)]++
	}
	var best []*model.Op
	for _, ops := range sequences {
		n, m := count[fingerprint(ops)], count[fingerprint(best)]
		if best == nil || n > m || (n == m && len(ops) > len(best)) {
			best = ops
		}
	}
	return best
}

// fingerprint renders what two sequences must have in common to be the same.
func fingerprint(ops []*model.Op) string {
	var b strings.Builder
	for _, op := range ops {
		bytes := int64(-1)
		if sameBytes(op.Collective.Name) {
			bytes = op.Collective.Bytes.Or(-1)
		}
		b.WriteString(strconv.FormatInt(bytes, 10))
		b.WriteByte(' ')
	}
	return b.String()
}

// maxShift bounds the search: a sequence that is displaced by more than this is
// not resynchronised.
const maxShift = 64

// minOverlap is the share of a sequence that must lie along the usual one.
const minOverlap = 0.5

// uniqueShift returns what must be added to the numbers of ops so that they
// agree in bytes with usual; false unless exactly one shift does.
func uniqueShift(ops, usual []*model.Op) (int64, bool) {
	found, shift := 0, 0
	for s := -maxShift; s <= maxShift; s++ {
		if agree(ops, usual, s) {
			found++
			shift = s
		}
	}
	return int64(shift), found == 1
}

func agree(ops, usual []*model.Op, shift int) bool {
	overlap := 0
	for i, op := range ops {
		k := i + shift
		if k < 0 || k >= len(usual) {
			continue
		}
		a, b := op.Collective.Bytes, usual[k].Collective.Bytes
		if !a.OK || !b.OK || a.V != b.V {
			return false
		}
		overlap++
	}
	return float64(overlap) >= minOverlap*float64(len(ops))
}
