// SPDX-License-Identifier: Apache-2.0

package pickle

// Limits bound what one pickle may cost. Zero limits mean the defaults.
type Limits struct {
	Bytes  int // of the pickle
	Text   int // bytes of one string
	Stack  int // values that wait for their list or dict
	Memo   int // values that are kept for being referred to
	Values int // values that lists, tuples and dicts hold, and texts
	Depth  int // lists, tuples and dicts within each other
}

// DefaultLimits returns limits with room for a Flight Recorder dump of 100,000
// operations from whatever writer, the largest buffers that users are known to set.
func DefaultLimits() Limits {
	return Limits{
		Bytes:  256 << 20, // 100,000 operations with stacks are some 50 MB
		Text:   16 << 20,  // NCCLX puts whole JSON documents into strings
		Stack:  1 << 20,   // 16 MiB; all operations wait for their list at once
		Memo:   4 << 20,   // 64 MiB; Python remembers every value that it writes
		Values: 8 << 20,   // 128 MiB
		Depth:  64,        // operations are six deep
	}
}

// Or takes from the defaults what l leaves at zero.
func (l Limits) Or(def Limits) Limits {
	for _, p := range []struct {
		to  *int
		def int
	}{
		{&l.Bytes, def.Bytes},
		{&l.Text, def.Text},
		{&l.Stack, def.Stack},
		{&l.Memo, def.Memo},
		{&l.Values, def.Values},
		{&l.Depth, def.Depth},
	} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	return l
}
