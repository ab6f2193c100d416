// SPDX-License-Identifier: Apache-2.0

package epoch

// Flat is what several together hold: nothing that is known, one value, or several. It is a flat
// lattice, unknown < v < mixed: two different values are joined by mixed alone. Its zero value is
// unknown.
type Flat[T comparable] struct {
	value T
	level level
}

// Agreement is what domains together hold: epochs.
type Agreement = Flat[int64]

type level uint8

const (
	nothing level = iota
	one
	several
)

// Holds is the agreement of a domain that holds an epoch.
func Holds(epoch int64) Agreement { return Of(epoch) }

// Of is what one holds who holds a value.
func Of[T comparable](v T) Flat[T] { return Flat[T]{v, one} }

// Join returns the least that is not below a nor b.
func (a Flat[T]) Join(b Flat[T]) Flat[T] {
	switch {
	case a.level == nothing:
		return b
	case b.level == nothing, a == b:
		return a
	}
	return Flat[T]{level: several}
}

// Mixed reports whether different values are held.
func (a Flat[T]) Mixed() bool { return a.level == several }

// Value is what all hold; false where nothing is known, or it is mixed.
func (a Flat[T]) Value() (T, bool) { return a.value, a.level == one }

// agreement joins what is held with the name of the save, which is one domain more: where all
// hold one epoch and the save is called another, that is mixed, too.
func (j *Judgement) agreement(save int64) Agreement {
	if len(j.Held) == 0 {
		return Agreement{}
	}
	a := Holds(save)
	for i := range j.Held {
		a = a.Join(Holds(j.Held[i].Epoch))
	}
	return a
}
