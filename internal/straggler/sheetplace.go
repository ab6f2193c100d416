// SPDX-License-Identifier: Apache-2.0

package straggler

import "github.com/lockstep-otel/lockstep/internal/straggler/judge"

// placeTable numbers the places of a job: one kind of time and one operation or scope.
type placeTable struct {
	known []knownPlace
	// ids are numbers plus one by kind and key; a scope has one for each cause.
	ids [int(judge.Kinds) + int(causes)][]judge.PlaceID
}

type knownPlace struct {
	kind judge.Kind
	why  cause
	key  uint32
}

func (t *placeTable) id(kind judge.Kind, key uint32, why cause) judge.PlaceID {
	row := int(kind)
	if kind == judge.Host {
		row = int(judge.Kinds) + int(why)
	}
	for int(key) >= len(t.ids[row]) {
		t.ids[row] = append(t.ids[row], 0)
	}
	at := &t.ids[row][key]
	if *at == 0 {
		t.known = append(t.known, knownPlace{kind, why, key})
		*at = judge.PlaceID(len(t.known))
	}
	return *at - 1
}

func (t *placeTable) place(id judge.PlaceID, keys *interner) judge.Place {
	if int(id) >= len(t.known) {
		return judge.Place{Key: otherKey}
	}
	k := t.known[id]
	op := &keys.ops[k.key]
	out := judge.Place{Kind: k.kind, Key: op.key, Shape: op.shape, Cause: causeNames[k.why], Backward: op.pass == passBackward}
	if op.name != op.key {
		out.Name = op.name
	}
	return out
}
