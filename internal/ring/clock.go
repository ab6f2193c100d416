// SPDX-License-Identifier: Apache-2.0

package ring

import "time"

// pairTries is how often the clocks are read for one pair: the closest reading
// counts, so that losing the processor between two does no harm.
const pairTries = 16

// NowPair reads both clocks of the host, as producers do.
func NowPair() ClockPair {
	best := ClockPair{Width: ^uint64(0)}
	for range pairTries {
		before := Now()
		realtime := uint64(time.Now().UnixNano())
		if width := Now() - before; width < best.Width {
			best = ClockPair{Raw: before + width/2, Realtime: realtime, Width: width}
		}
	}
	return best
}
