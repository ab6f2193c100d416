// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const board = `# Scoreboard

136 jobs of 136 cases, 8 to 64 ranks
AMD EPYC, 2 cores

## lockstep: aims

                               got                     aim      
precision of what was decided  88 of 88                         
victims accused                0 in 81 jobs            0        reached

## methods side by side

method         faults  decided%  class%  victims  ns/op  
lockstep       89      97.8      97.8    0        3944   
latest-start   89      82.0              50       57     cannot abstain
precision: of all accusations, those with the right place.

## lockstep: faults, by family and scale

family     ranks  jobs  faults  decided%  steps p50
gpu_clock  8      16    13      92.3      4        
gpu_clock  64     3     2       100.0     7        
`

const hangBoard = `| family | missing | faults | told | candidates |
| --- | --- | --- | --- | --- |
| host_stuck | 0 % | 66 | 100.0 % | 5.3 |
| host_stuck | 10 % | 65 | 73.8 % | 7.2 |

Of 7300 faults 3662 were told.
`

func TestFigureChanges_EachFigure_IsJudgedByItsMeaning(t *testing.T) {
	for name, tc := range map[string]struct{ text, old, new, want string }{
		"more decided":  {board, "92.3      4 ", "93.3      4 ", "lockstep: faults, by family and scale | gpu_clock, 8 | decided%: 92.3 -> 93.3: better"},
		"other scale":   {board, "100.0     7 ", "90.0      7 ", "lockstep: faults, by family and scale | gpu_clock, 64 | decided%: 100.0 -> 90.0: worse"},
		"later":         {board, "92.3      4 ", "92.3      6 ", "lockstep: faults, by family and scale | gpu_clock, 8 | steps p50: 4 -> 6: worse"},
		"fewer victims": {board, "50       57", "40       57", "methods side by side | latest-start | victims: 50 -> 40: better"},
		"other faults":  {board, "89      82.0", "88      82.0", "methods side by side | latest-start | faults: 89 -> 88: changed"},
		"an aim":        {board, "0 in 81", "2 in 81", "lockstep: aims | victims accused | got: 0 in 81 jobs -> 2 in 81 jobs: worse"},
		"hangs told":    {hangBoard, "73.8 %", "72.8 %", "family, missing, faults | host_stuck, 10 % | told: 73.8 % -> 72.8 %: worse"},
		"hangs":         {hangBoard, "| 7.2 |", "| 6.2 |", "family, missing, faults | host_stuck, 10 % | candidates: 7.2 -> 6.2: better"},
	} {
		got := figureChanges(tc.text, strings.Replace(tc.text, tc.old, tc.new, 1))

		assert.Equal(t, []string{tc.want}, got.lines(), name)
		assert.Positive(t, got.equal, name)
	}
}

func TestFigureChanges_TimesOfTheMachine_DoNotCount(t *testing.T) {
	got := figureChanges(board, strings.NewReplacer("3944", "4001", "EPYC", "Xeon").Replace(board))

	assert.Empty(t, got.lines())
}

func TestFigureChanges_RowGone_IsShown(t *testing.T) {
	got := figureChanges(hangBoard, strings.Replace(hangBoard, "| host_stuck | 10 % | 65 | 73.8 % | 7.2 |\n", "", 1))

	assert.Equal(t, "family, missing, faults | host_stuck, 10 % | faults: 65 -> (none): changed", got.lines()[0])
	assert.Len(t, got.lines(), 3)
}
