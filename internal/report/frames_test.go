// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Frames of C++, of which a call has tens, do not push those of the program out.
func TestShownFrames(t *testing.T) {
	lines := func(n int, form string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(form, i, i+1))
		}
		return all
	}
	cpp := func(n int) []string { return lines(n, "c10d::all_reduce<%d>() (??:%d)") }
	py := func(n int) []string { return lines(n, "step_%d (/job/train.py:%d)") }
	for name, c := range map[string]struct {
		frames        []string
		cpp, py, left int
	}{
		"few":              {append(cpp(3), py(2)...), 3, 2, 0},
		"C++ first":        {append(cpp(40), py(5)...), 19, 5, 21},
		"many of both":     {append(cpp(40), py(40)...), 12, 12, 56},
		"Python first":     {append(py(40), cpp(3)...), 3, 21, 19},
		"Python alone":     {py(30), 0, 24, 6},
		"C++ alone":        {cpp(30), 24, 0, 6},
		"a module's frame": {append(cpp(40), "<module> (<string>:1)"), 23, 0, 17},
	} {
		t.Run(name, func(t *testing.T) {
			shown, left := ShownFrames(strings.Join(c.frames, "\n"))
			text := strings.Join(shown, "\n")
			assert.Equal(t, c.cpp, strings.Count(text, "c10d::"))
			assert.Equal(t, c.py, strings.Count(text, "step_"))
			assert.Equal(t, c.left, left)
			assert.LessOrEqual(t, len(shown), maxFramesShown)
		})
	}
}
