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
