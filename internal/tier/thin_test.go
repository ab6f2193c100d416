// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// thinned counts the cases of three loops that run, and how many of them have each value.
func thinned(t *testing.T, every int) (cases int, values map[[2]int]int) {
	t.Helper()
	thin := Thin{Every: every}
	values = map[[2]int]int{}
	for a := range 7 {
		for b := range 4 {
			for c := range 3 {
				if thin.Skips(t) {
					continue
				}
				cases++
				values[[2]int{0, a}]++
				values[[2]int{1, b}]++
				values[[2]int{2, c}]++
			}
		}
	}
	return cases, values
}

func TestThin_Quick_SpreadsOverAllValues(t *testing.T) {
	t.Setenv(Env, "quick")
	cases, values := thinned(t, 5)
	assert.Equal(t, 17, cases, "the first, the 6th, ... the 81st of 84")
	for loop, of := range []int{7, 4, 3} {
		for value := range of {
			assert.InDelta(t, 17/float64(of), values[[2]int{loop, value}], 1, "value %d of loop %d", value, loop)
		}
	}
}

func TestThin_Full_RunsAll(t *testing.T) {
	t.Setenv(Env, "full")
	cases, _ := thinned(t, 5)
	assert.Equal(t, 84, cases)
}
