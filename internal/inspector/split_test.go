// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

type cutLine struct {
	text    string
	offset  int64
	number  int64
	tooLong bool
	gap     int64
	torn    int
}

func split(s *Splitter, chunks ...string) (out []cutLine) {
	for _, c := range chunks {
		s.Feed([]byte(c), func(l Line) {
			out = append(out, cutLine{string(l.Text), l.Offset, l.Number, l.TooLong, l.Gap, l.Torn})
		})
	}
	return out
}

func TestLinesAreWaitedFor(t *testing.T) {
	s := NewSplitter(100, SplitState{})
	assert.Equal(t, []cutLine{{text: "one", number: 1}}, split(s, "one\ntw"))
	assert.Equal(t, int64(2), s.Pending())
	assert.Equal(t, int64(6), s.Next())
	assert.Equal(t, []cutLine{{text: "two", offset: 4, number: 2}, {text: "four", offset: 9, number: 4}}, split(s, "o\n", "\nfour\r\n"))
	assert.Zero(t, s.Pending())
}

func TestALineThatIsTooLong(t *testing.T) {
	s := NewSplitter(10, SplitState{})
	got := split(s, "0123456789", "x", strings.Repeat("y", 1000), "\nnext\n0123456789\n")
	assert.Equal(t, []cutLine{
		{text: "0123456789", number: 1, tooLong: true},
		{text: "next", offset: 1012, number: 2},
		{text: "0123456789", offset: 1017, number: 3},
	}, got)
	assert.LessOrEqual(t, cap(s.buf), 64, "it is not kept")
}

func TestAHole(t *testing.T) {
	s := NewSplitter(10, SplitState{})
	got := split(s, "ab", "c\x00\x00", strings.Repeat("\x00", 1000), "tail\nnext\n")
	assert.Equal(t, []cutLine{
		{text: "tail", number: 1, gap: 1002, torn: 3},
		{text: "next", offset: 1010, number: 2},
	}, got)
}

func TestGoingOnFromAState(t *testing.T) {
	s := NewSplitter(100, SplitState{Place: Place{Offset: 41}, Skipping: true})
	assert.Equal(t, []cutLine{{text: "whole", offset: 46, number: 2}}, split(s, "rest\nwhole\n"))
}

// Wherever the reading is broken off and taken up again, the lines are the same.
func TestTakingUpAgainAnywhere(t *testing.T) {
	text := "first\n\n" + strings.Repeat("long", 8) + "\nab\x00\x00\x00cd\nlast line\n\x00\x00end\nopen"
	want := split(NewSplitter(16, SplitState{}), text)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var got []cutLine
		state := SplitState{}
		for {
			s := NewSplitter(16, state)
			from := int(state.Next())
			to := from + rng.IntN(len(text)-from+1)
			mid := from + rng.IntN(to-from+1)
			got = append(got, split(s, text[from:mid], text[mid:to])...)
			assert.Equal(t, int64(to), s.Next())
			state = s.State()
			if to == len(text) {
				break
			}
		}
		assert.Equal(t, want, got)
	}
}
