// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Lines of many processes that go on, or were long, take no more than a part of the file.
func TestUnwrapper_LongLinesOfManyProcesses_BuffersStayBounded(t *testing.T) {
	for _, partial := range []bool{true, false} {
		t.Run(fmt.Sprint("partial ", partial), func(t *testing.T) {
			const lines, limit = 3 << 9, 64 << 20
			passed, numbers := 0, []int64{}
			u := unwrapper{streams: map[streamOf]*cutLine{}, do: func(number int64, _ string, line []byte) {
				passed += len(line)
				numbers = append(numbers, number)
			}}
			text := make([]byte, maxLine)
			for i := range lines {
				u.collected(int64(i), &collected{from: fmt.Sprint("process ", i), text: text, partial: partial})
			}
			held, room := 0, 0
			for _, to := range u.streams {
				held, room = held+len(to.text), room+cap(to.text)
			}
			assert.LessOrEqual(t, room, limit+2*maxLine)
			assert.Equal(t, lines*maxLine, passed+held, "every byte is passed on or held")
			assert.IsIncreasing(t, numbers)
		})
	}
}

// Finished lines take no room from an unfinished one.
func TestUnwrapper_LongWholeLinesOfOthers_CutLineIsJoined(t *testing.T) {
	for name, end := range map[string]string{"line feed": "\n", "none": ""} {
		t.Run(name, func(t *testing.T) {
			var joined []string
			u := unwrapper{streams: map[streamOf]*cutLine{}, do: func(_ int64, from string, line []byte) {
				if from == "cut" {
					joined = append(joined, string(line))
				}
			}}
			u.collected(1, &collected{from: "cut", text: []byte("its begin"), partial: true})
			whole := append(make([]byte, maxLine-len(end)), end...)
			const others = 1100 // of more than 64 MiB together
			for i := range others {
				u.collected(int64(2+i), &collected{from: fmt.Sprint("process ", i), text: whole})
			}
			u.collected(2+others, &collected{from: "cut", text: []byte("ning" + end)})
			assert.Equal(t, []string{"its beginning"}, joined)
		})
	}
}

// Finished lines that came in pieces take no room, either.
func TestUnwrapper_CutLinesThatEnded_HoldNothing(t *testing.T) {
	u := unwrapper{streams: map[streamOf]*cutLine{}, do: func(int64, string, []byte) {}}
	piece := make([]byte, maxLine/2)
	const processes = 100
	for i := range processes {
		from := fmt.Sprint("process ", i)
		u.collected(int64(2*i), &collected{from: from, text: piece, partial: true})
		u.collected(int64(2*i+1), &collected{from: from, text: piece})
	}
	held := 0
	for _, to := range u.streams {
		held += cap(to.text)
	}
	assert.Len(t, u.streams, processes)
	assert.Zero(t, held, "bytes of buffers")
	assert.Zero(t, u.held, "bytes counted")
}
