// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChanges_SomeLines_AreFound(t *testing.T) {
	got := changes("a\nb\nc\nd\ne", "a\nB\nc\ne\nf")

	assert.Equal(t, []string{"-b", "+B", "-d", "+f"}, texts(got))
	assert.Equal(t, 2, got[0].at)
}

// Whatever the lines are, the changes turn one side into the other, and are as few as they can
// be: both sides less twice their longest common subsequence.
func TestChanges_RandomLines_TurnBaseIntoHead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		side := func() []string {
			out := make([]string, 1+rng.IntN(12))
			for i := range out {
				out[i] = strconv.Itoa(rng.IntN(4))
			}
			return out
		}
		a, b := side(), side()
		got := changes(strings.Join(a, "\n"), strings.Join(b, "\n"))
		require.Len(t, got, len(a)+len(b)-2*common2(a, b), "%v %v", a, b)
		var minus, plus []string
		for _, c := range got {
			if c.sign == '-' {
				require.Equal(t, a[c.at-1], c.text)
				minus = append(minus, c.text)
			} else {
				require.Equal(t, b[c.at-1], c.text)
				plus = append(plus, c.text)
			}
		}
		require.Equal(t, len(a)-len(minus), len(b)-len(plus))
	}
}

// common2 is the length of the longest common subsequence, by the plain recurrence.
func common2(a, b []string) int {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				best[i+1][j+1] = best[i][j] + 1
			} else {
				best[i+1][j+1] = max(best[i][j+1], best[i+1][j])
			}
		}
	}
	return best[len(a)][len(b)]
}

func TestExcerpt_ManyAndLongLines_IsBounded(t *testing.T) {
	long := strings.Repeat("x", 500)
	got := excerpt(changes(long+"a\n"+strings.Repeat("old\n", 50), long+"b\n"), 4)

	assert.Equal(t, 4+2, strings.Count(got, "\n"), "a place, the lines, and how many more")
	assert.Contains(t, got, "more changed lines")
	assert.Contains(t, got, "xa\n", "what differs is shown")
	for line := range strings.Lines(got) {
		assert.Less(t, len(line), 220)
	}
}
