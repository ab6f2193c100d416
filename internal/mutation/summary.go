// SPDX-License-Identifier: Apache-2.0

package mutation

import "math"

// Counts are the verdicts on some mutants.
type Counts struct {
	Quick         int // killed by the quick tier
	QuickTimedOut int // of those, by a time limit
	FullOnly      int // killed by the full tier alone
	FullTimedOut  int // of those, by a time limit
	Alive         int // alive after both
	Chance        int // of all, those on which a test failed by chance
}

// Add adds the verdict of one record.
func (c *Counts) Add(r Record) {
	if len(r.Chance) > 0 {
		c.Chance++
	}
	switch {
	case r.Quick.dead():
		c.Quick++
		if r.Quick == TimedOut {
			c.QuickTimedOut++
		}
	case r.Full.dead():
		c.FullOnly++
		if r.Full == TimedOut {
			c.FullTimedOut++
		}
	default:
		c.Alive++
	}
}

// Dead returns how many mutants either tier kills.
func (c Counts) Dead() int { return c.Quick + c.FullOnly }

// Share returns the share of these that the quick tier kills, 0 to 1, or NaN where there
// are none.
func (c Counts) Share() float64 { return float64(c.Quick) / float64(c.Dead()) }

// Count returns the counts of all records, and those by what key returns.
func Count(records []Record, key func(Record) string) (all Counts, by map[string]Counts) {
	by = map[string]Counts{}
	for _, r := range records {
		all.Add(r)
		c := by[key(r)]
		c.Add(r)
		by[key(r)] = c
	}
	return all, by
}

// z is the quantile of the normal distribution that leaves 2.5 % above it.
const z = 1.959963984540054

// Wilson returns the 95 % score interval of a share of which k in n were seen (Wilson, JASA
// 22, 1927), or 0 to 1 where n is 0.
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	share, count := float64(k)/float64(n), float64(n)
	middle := share + z*z/(2*count)
	width := z * math.Sqrt(share*(1-share)/count+z*z/(4*count*count))
	scale := 1 + z*z/count
	return (middle - width) / scale, (middle + width) / scale
}
