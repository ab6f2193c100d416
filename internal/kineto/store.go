// SPDX-License-Identifier: Apache-2.0

package kineto

// eventKind says what an event is to us.
type eventKind uint8

const (
	evSkip       eventKind = iota
	evKernel               // GPU kernel that computes
	evComm                 // GPU kernel that communicates
	evCopy                 // copy or set of GPU memory
	evScope                // annotation of the program
	evHost                 // operator on the host
	evCommLaunch           // operator that hands a collective to a CPU backend
	evGloo                 // run of a collective by a CPU backend
	evNCCLMark             // annotation or record_param_comms around a launch
	evLaunch               // call of the GPU runtime
	evStep                 // ProfilerStep
)

// event is a kept event: 64 bytes, no pointer. Times are ns before the base is
// added.
type event struct {
	ts, dur int64
	tid     int64 // stream of GPU events, else thread
	val     int64 // Seq of collectives, bytes of copies, elements of CPU launches; -1 unknown
	ext     uint32
	corr    uint32 // CUPTI counts in 32 bits; 0 unknown
	name    uint32
	meta    uint32 // collective arguments
	grid    uint32
	launch  uint32 // index of launch + 1; 0 unknown
	step    int32  // index of step, -1 outside
	kind    eventKind
	flags   uint8
}

const (
	flagSeqComm uint8 = 1 << iota // val was counted by PyTorch
	flagOrdinal                   // val was counted by us
	flagLost                      // val can not be known
	flagHost                      // runs on the host
)

func (e *event) end() int64 { return e.ts + e.dur }

// launch is the host side of a GPU operation, or of a CPU collective.
type launch struct {
	ts, tid int64
	corr    uint32
	graph   bool
}

const chunkBits = 12

// chunked is a growing array that is never copied while it grows.
type chunked[T any] struct {
	chunks [][]T
	n      int
}

func (c *chunked[T]) add(v T) {
	if c.n&(1<<chunkBits-1) == 0 {
		c.chunks = append(c.chunks, make([]T, 1<<chunkBits))
	}
	*c.at(c.n) = v
	c.n++
}

// at returns the i-th element; the caller adds behind n only by add.
func (c *chunked[T]) at(i int) *T { return &c.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

func (c *chunked[T]) reset() { c.chunks, c.n = nil, 0 }

// chunkedSort sorts a chunked array in place.
type chunkedSort[T any] struct {
	*chunked[T]
	less func(a, b *T) bool
}

func (s chunkedSort[T]) Len() int           { return s.n }
func (s chunkedSort[T]) Less(i, j int) bool { return s.less(s.at(i), s.at(j)) }
func (s chunkedSort[T]) Swap(i, j int)      { a, b := s.at(i), s.at(j); *a, *b = *b, *a }

// name is a distinct event name and what follows from it alone.
type name struct {
	text string // as shown
	key  string // for comparison; empty where equal to text
	kern kernelName
	step int64 // number of a step annotation, -1 for none
	fam  string
	api  apiKind
}

// table numbers strings; number 0 is the string of what did not fit.
type table struct {
	ids      map[string]uint32
	all      []string
	limit    int
	maxLen   int
	overflow *counterAt
}

func newTable(limit, maxLen int, overflow *counterAt) *table {
	return &table{ids: map[string]uint32{}, all: []string{""}, limit: limit, maxLen: maxLen, overflow: overflow}
}

// id returns the string's number; 0 for the empty one, and for one that is too
// long or too many.
func (t *table) id(b []byte, at int64) uint32 {
	if len(b) == 0 {
		return 0
	}
	if id, ok := t.ids[string(b)]; ok {
		return id
	}
	if len(t.all) > t.limit || len(b) > t.maxLen {
		t.overflow.hit(at)
		return 0
	}
	id := uint32(len(t.all))
	s := string(b)
	t.ids[s] = id
	t.all = append(t.all, s)
	return id
}
