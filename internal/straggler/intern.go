// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// interner numbers operations: by their key alone, and by key, name and shape.
type interner struct {
	ids  map[opName]uint32
	ops  []opKnown
	last uint32

	text, bytes int64 // of texts, and of all
}

// opName is what an operation is known by. Name and shape are "" where only the key
// counts.
type opName struct{ key, name, shape string }

type opKnown struct {
	opName
	plain uint32  // the number of the key alone
	grid  float64 // how many blocks the shape has, 0 where unknown
	pass  pass
	next  uint32 // the one that came after it last: programs repeat
}

// pass is the direction through the model that an operation belongs to.
type pass uint8

const (
	passForward pass = iota
	passBackward
)

// maxKeys bounds the distinct operations of a job; further ones are counted
// and share the key otherKey.
const (
	maxKeys  = 1 << 16
	otherKey = model.OpOther
	// maxKeyText bounds the bytes of their texts: 256 for each on average, where names of
	// kernels have some 100.
	maxKeyText = 256 * maxKeys
)

func newInterner() *interner {
	return &interner{ids: map[opName]uint32{{key: otherKey}: 0}, ops: []opKnown{{opName: opName{key: otherKey}}}}
}

// id returns the number of a key; guess is what it may be.
func (in *interner) id(key string, guess uint32, stats *Stats) uint32 {
	return in.number(opName{key: key}, guess, stats)
}

// exact returns the number of an operation's key, name and shape. The keys of
// operations beyond maxKeys are told apart no more.
func (in *interner) exact(op *model.Op, guess uint32, stats *Stats) uint32 {
	name := op.Name
	key := op.ComparisonKey()
	if op.WorkGrid == "" && (op.Key == "" || name == key) {
		name = ""
	}
	return in.number(opName{key: key, name: name, shape: op.WorkGrid}, guess, stats)
}

func (in *interner) number(n opName, guess uint32, stats *Stats) uint32 {
	if int(guess) < len(in.ops) && in.ops[guess].opName == n {
		in.last = guess
		return guess
	}
	last := in.last
	if next := in.ops[last].next; in.ops[next].opName == n {
		in.last = next
		return next
	}
	i, ok := in.ids[n]
	if !ok {
		i = in.enter(n, stats)
	}
	in.ops[last].next, in.last = i, i
	return i
}

// enter gives an operation a number.
func (in *interner) enter(n opName, stats *Stats) uint32 {
	text := int64(len(n.key) + len(n.name) + len(n.shape))
	if len(in.ops) >= maxKeys || in.text+text > maxKeyText {
		stats.PlacesOverflowed++
		return 0
	}
	known := opKnown{opName: n, grid: blocks(n.shape), pass: passOf(n)}
	if n.name != "" || n.shape != "" {
		known.plain = in.number(opName{key: n.key}, 0, stats)
		if len(in.ops) >= maxKeys || in.text+text > maxKeyText {
			return known.plain
		}
	} else {
		known.plain = uint32(len(in.ops))
	}
	i := uint32(len(in.ops))
	in.text += text
	in.bytes += opKnownBytes + text
	in.ids[n] = i
	in.ops = append(in.ops, known)
	return i
}

// name returns the key of a number.
func (in *interner) name(i uint32) string { return in.ops[i].key }

// plain returns the number of the key alone.
func (in *interner) plain(i uint32) uint32 { return in.ops[i].plain }

// blocks returns the product of the numbers in a shape such as "128,1,1 f16", up to
// its first space.
func blocks(shape string) float64 {
	product, some := 1.0, false
	shape, _, _ = strings.Cut(shape, " ")
	for _, f := range strings.FieldsFunc(shape, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n <= 0 {
			return 0
		}
		product, some = product*float64(n), true
	}
	if !some || product > math.MaxInt64 {
		return 0
	}
	return product
}

// passOf tells by the usual words in which direction an operation goes.
func passOf(n opName) pass {
	for _, s := range []string{n.key, n.name} {
		s = strings.ToLower(s)
		for _, word := range []string{"backward", "bwd", "bprop", "cutlassb", "dgrad", "wgrad"} {
			if strings.Contains(s, word) {
				return passBackward
			}
		}
	}
	return passForward
}
