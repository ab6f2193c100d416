// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ordinalKey names a sequence that was counted by us, within one step.
type ordinalKey struct {
	comm, digest, name string
}

// resyncOrdinals mends the numbers of collectives that were counted within a
// step where ranks did not see the same ones: a recording may begin or end inside
// a step. A rank's sequence is laid along the usual one where the bytes agree in
// exactly one place; else its operations lose their numbers, since a wrong
// partner is worse than none. It returns how many did. Messages are counted per
// direction and peer, and not mended.
func resyncOrdinals(views []*rankView) (lost int) {
	if !unequal(views) {
		return 0
	}
	groups := map[ordinalKey][][]*commOp{} // by rank, in order
	owner := map[ordinalKey]*rankView{}    // of the last sequence
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			if op.form.scope != model.ScopeOrdinal || op.form.kind != model.KindCollective {
				continue
			}
			k := ordinalKey{comm: op.form.comm, digest: op.form.digest, name: op.form.collective}
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

// sequenceOf sums up what a rank saw in a group.
type sequenceOf struct {
	group        uint32
	count, bytes uint64
}

// unequal reports whether ranks saw different sequences in some group.
func unequal(views []*rankView) bool {
	first := map[uint32]sequenceOf{}
	var here []sequenceOf
	var at byGroup
	for _, v := range views {
		here = v.sequences(here[:0], &at)
		for _, s := range here {
			if f, ok := first[s.group]; !ok {
				first[s.group] = s
			} else if f != s {
				return true
			}
		}
	}
	return false
}

// sequences appends what the rank saw in each group whose numbers were counted by us.
func (v *rankView) sequences(out []sequenceOf, at *byGroup) []sequenceOf {
	for i := range v.comms {
		op := &v.comms[i]
		if op.form.scope != model.ScopeOrdinal || op.form.kind != model.KindCollective {
			continue
		}
		k, known := at.place(op.form.group, len(out))
		if !known {
			out = append(out, sequenceOf{group: op.form.group})
		}
		bytes := int64(-1)
		if sameBytes(op.form.collective) {
			bytes = op.bytes
		}
		out[k].count++
		out[k].bytes = mix(out[k].bytes, uint64(bytes), 9)
	}
	for _, s := range out {
		at.forget(s.group)
	}
	return out
}

// byGroup finds what was noted of a group, by the group's number.
type byGroup []int32 // 1 + its place, 0 for none

// place returns where the group is noted; else it is from now on at next.
func (b *byGroup) place(group uint32, next int) (at int, known bool) {
	if more := int(group) + 1 - len(*b); more > 0 {
		*b = append(*b, make([]int32, more)...)
	}
	if n := (*b)[group]; n > 0 {
		return int(n) - 1, true
	}
	(*b)[group] = int32(next) + 1
	return next, false
}

func (b byGroup) forget(group uint32) { b[group] = 0 }

func resync(sequences [][]*commOp) (lost int) {
	usual := usualSequence(sequences)
	for _, ops := range sequences {
		if len(ops) == len(usual) && !contradicts(ops, usual) {
			continue
		}
		shift, ok := uniqueShift(ops, usual)
		for _, op := range ops {
			if !ok {
				op.numbered = false
				lost++
				continue
			}
			op.number += shift
		}
	}
	return lost
}

// contradicts reports whether sequences of one length differ in bytes that must
// be equal.
func contradicts(ops, usual []*commOp) bool {
	for i, op := range ops {
		a, b := op.bytes, usual[i].bytes
		if sameBytes(op.form.collective) && a >= 0 && b >= 0 && a != b {
			return true
		}
	}
	return false
}

// usualSequence returns the sequence that most ranks have, in length and in
// bytes; of equally frequent ones the longer, then the first.
func usualSequence(sequences [][]*commOp) []*commOp {
	count := map[string]int{}
	for _, ops := range sequences {
		count[fingerprint(ops)]++
	}
	var best []*commOp
	for _, ops := range sequences {
		n, m := count[fingerprint(ops)], count[fingerprint(best)]
		if best == nil || n > m || (n == m && len(ops) > len(best)) {
			best = ops
		}
	}
	return best
}

// fingerprint renders what two sequences must have in common to be the same.
func fingerprint(ops []*commOp) string {
	var b strings.Builder
	for _, op := range ops {
		bytes := int64(-1)
		if sameBytes(op.form.collective) {
			bytes = op.bytes
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
func uniqueShift(ops, usual []*commOp) (int64, bool) {
	found, shift := 0, 0
	for s := -maxShift; s <= maxShift; s++ {
		if agree(ops, usual, s) {
			found++
			shift = s
		}
	}
	return int64(shift), found == 1
}

func agree(ops, usual []*commOp, shift int) bool {
	overlap := 0
	for i, op := range ops {
		k := i + shift
		if k < 0 || k >= len(usual) {
			continue
		}
		a, b := op.bytes, usual[k].bytes
		if a < 0 || b < 0 || a != b {
			return false
		}
		overlap++
	}
	return float64(overlap) >= minOverlap*float64(len(ops))
}
