// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"strconv"
	"strings"
)

// The limits of a call stack as shown. Where C++ frames were recorded, too, which are many and have
// long names, those of either language have half of it, so that neither hides the other.
const (
	maxFrames     = 64
	maxStackBytes = 8 << 10
)

// ofPython reports whether a frame is one of Python.
func (f *Frame) ofPython() bool {
	return strings.HasSuffix(f.File, ".py") || strings.HasPrefix(f.File, "<")
}

// stackText writes a call stack, innermost frame first, one a line.
func stackText(frames []Frame) string {
	count := [2]int{}
	for i := range frames {
		count[kindOf(&frames[i])]++
	}
	left, room := [2]int{maxFrames, maxFrames}, [2]int{maxStackBytes, maxStackBytes}
	if count[0] > 0 && count[1] > 0 {
		for k := range left {
			left[k] = max(maxFrames/2, maxFrames-count[1-k])
			room[k] = maxStackBytes / 2
		}
	}
	var lines []string
	for i := range frames {
		f := &frames[i]
		k := kindOf(f)
		if left[k] <= 0 || room[k] <= 0 {
			if lines[len(lines)-1] != "..." {
				lines = append(lines, "...")
			}
			continue
		}
		line := clip(f.Name) + " (" + clip(f.File) + ":" + strconv.FormatInt(f.Line, 10) + ")"
		lines = append(lines, line)
		left[k]--
		room[k] -= len(line)
	}
	return strings.Join(lines, "\n")
}

func kindOf(f *Frame) int {
	if f.ofPython() {
		return 1
	}
	return 0
}
