// SPDX-License-Identifier: Apache-2.0

package model

// Optional is a value that may be unknown. Unknown is not zero: rank 0, stream
// 0 and step 0 all exist.
type Optional[T any] struct {
	V  T
	OK bool
}

// Some returns a known value.
func Some[T any](v T) Optional[T] { return Optional[T]{V: v, OK: true} }

// Or returns the value, or def where it is unknown.
func (o Optional[T]) Or(def T) T {
	if o.OK {
		return o.V
	}
	return def
}
