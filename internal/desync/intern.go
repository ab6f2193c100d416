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
}

func newSigTable() sigTable { return sigTable{byValue: map[signature]int32{}} }

func (t *sigTable) of(o *model.StateOp) int32 {
	s := signature{
		Name: o.Name, Recorded: o.Recorded, In: o.In, Out: o.Out, InElems: o.InElems.Or(-1), OutElems: o.OutElems.Or(-1),
		InType: o.InType, OutType: o.OutType, Bytes: o.Bytes.Or(-1), Root: o.Root.Or(-1),
	}
	if i, ok := t.byValue[s]; ok {
		return i
	}
	i := int32(len(t.all))
	t.byValue[s] = i
	t.all = append(t.all, s)
	return i
}
