// SPDX-License-Identifier: Apache-2.0

package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// interner gives short strings numbers; the empty one is 0.
type interner struct {
	byText map[string]int32
	texts  []string
}

func newInterner() interner {
	return interner{byText: map[string]int32{"": 0}, texts: []string{""}}
}

// maxNames bounds the functions of communicators; there are some tens in all libraries.
const maxNames = 1 << 16

func (n *interner) of(s string) int32 {
	if i, ok := n.byText[s]; ok {
		return i
	}
	if len(n.texts) >= maxNames {
		return 0
	}
	i := int32(len(n.texts))
	n.byText[s] = i
	n.texts = append(n.texts, s)
	return i
}

// signature is what members of one operation must agree on, and how it is said.
type signature struct {
	Name              string
	Recorded          string
	In, Out           string
	InElems, OutElems int64 // -1: unknown
	InType, OutType   string
	Bytes             int64 // -1: unknown
	Root              int64 // -1: unknown
}

// sigTable gives signatures numbers.
type sigTable struct {
	byValue map[signature]int32
	all     []signature
	// recent are places + 1 of signatures that came lately, where their sizes put them: most
	// operations of a job are alike, and hashing six strings takes longer than comparing them.
	recent [recentSigs]int32
}

// recentSigs is a power of two above the different calls of one step of a large model.
const recentSigs = 256

func newSigTable() sigTable { return sigTable{byValue: map[signature]int32{}} }

func (t *sigTable) of(o *model.StateOp) int32 {
	s := signature{
		Name: o.Name, Recorded: o.Recorded, In: o.In, Out: o.Out, InElems: o.InElems.Or(-1), OutElems: o.OutElems.Or(-1),
		InType: o.InType, OutType: o.OutType, Bytes: o.Bytes.Or(-1), Root: o.Root.Or(-1),
	}
	at := &t.recent[s.spot()]
	if i := *at - 1; i >= 0 && t.all[i] == s {
		return i
	}
	i, ok := t.byValue[s]
	if !ok {
		i = int32(len(t.all))
		t.byValue[s] = i
		t.all = append(t.all, s)
	}
	*at = i + 1
	return i
}

// spot spreads signatures by their numbers.
func (s *signature) spot() uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: its products spread in the high bits
	n := uint64(s.InElems)*odd + uint64(s.OutElems)
	return ((n*odd + uint64(len(s.Recorded)+len(s.In)<<8)) * odd) >> 56
}
