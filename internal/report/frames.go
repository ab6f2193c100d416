// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// maxFramesShown bounds the frames of a call stack that are printed: as deep as one screen.
const maxFramesShown = 24

// ShownFrames returns the frames of a call stack to print, and how many are left out. Where there
// are those of C++ and of Python, neither hides the other.
func ShownFrames(text string) (shown []string, left int) {
	all := strings.Split(text, "\n")
	var count [2]int
	for _, f := range all {
		count[language(f)]++
	}
	var room [2]int
	for k := range room {
		room[k] = max(maxFramesShown/2, maxFramesShown-count[1-k])
	}
	for _, f := range all {
		k := language(f)
		if room[k] <= 0 {
			left++
			continue
		}
		room[k]--
		shown = append(shown, f)
	}
	return shown, left
}

// language is 1 of a frame of Python.
func language(frame string) int {
	if strings.Contains(frame, ".py:") || strings.Contains(frame, "(<") {
		return 1
	}
	return 0
}
