// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// Sizes of hostile texts, bytes.
const (
	shortest = 4 << 10
	longest  = 100 << 10
	longName = 1000
)

// texts makes texts that differ from all others of the run.
type texts struct {
	rng  *rand.Rand
	base string
	n    int64
}

func newTexts(seed uint64) *texts {
	rng := rand.New(rand.NewPCG(seed, 1))
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./"
	base := make([]byte, 2*longest)
	for i := range base {
		base[i] = letters[rng.IntN(len(letters))]
	}
	return &texts{rng: rng, base: string(base)}
}

// name returns a text of a few bytes that no other message has.
func (t *texts) name() string {
	t.n++
	return "hostile-" + strconv.FormatInt(t.n, 36)
}

// sized returns a text of size bytes that begins with a new name.
func (t *texts) sized(size int) string {
	name := t.name()
	from := t.rng.IntN(longest)
	return name + t.base[from:from+max(size-len(name), 0)]
}

// long returns a text of 4 to 100 KiB, each size as likely as its double.
func (t *texts) long() string {
	return t.sized(int(shortest * math.Pow(float64(longest)/shortest, t.rng.Float64())))
}
