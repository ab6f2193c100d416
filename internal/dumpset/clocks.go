// SPDX-License-Identifier: Apache-2.0

package dumpset

import "time"

// clocks is what dumps tell of the clock of one rank against those of the others.
type clocks struct {
	known   bool
	offsets []int64       // of the others against it; 0 where equal clocks are not excluded
	proven  time.Duration // the greatest of them
	// earlier and later are by how much its own clock may be off beside that, ns.
	earlier, later int64
}

// compareClocks bounds the offsets between the clock of the first and those of the others: nobody
// leaves certain collectives before all have entered them, so that one's end is not before another's
// beginning. Bounds of two pairs with a rank in common give one of the third. Where they contradict
// one another, as clocks drift or hosts do not wait in their calls, nothing is known.
func compareClocks(all []*past) clocks {
	most := boundsOf(all)
	c := clocks{offsets: make([]int64, len(all)-1), earlier: never, later: never}
	for q := range most {
		if most[q][q] < 0 {
			return clocks{offsets: c.offsets}
		}
	}
	equal := true
	for q := range all[1:] {
		equal = equal && most[q+1][0] >= 0 && most[0][q+1] >= 0
	}
	for i := range c.offsets {
		ahead, behind := most[i+1][0], most[0][i+1]
		if ahead == never || behind == never {
			continue
		}
		c.known = true
		if !equal { // the middle of two answers that hold for all ranks at once
			c.offsets[i] = (ahead - behind) / 2
			c.proven = max(c.proven, time.Duration(c.offsets[i]).Abs())
		}
		c.later, c.earlier = min(c.later, ahead-c.offsets[i]), min(c.earlier, behind+c.offsets[i])
	}
	c.later, c.earlier = max(0, c.later), max(0, c.earlier)
	return c
}

// boundsOf is by how much the clock of each can be ahead of each other's, at most. On the diagonal
// less than 0 says that they contradict one another. (Floyd, "Algorithm 97", CACM 5(6), 1962)
func boundsOf(all []*past) [][]int64 {
	most := make([][]int64, len(all))
	for a := range most {
		most[a] = make([]int64, len(all))
		for b := range most[a] {
			if a != b {
				most[a][b] = notAfter(all[a], all[b])
			}
		}
	}
	for by := range most {
		for a := range most {
			for b := range most {
				if most[a][by] != never && most[by][b] != never {
					most[a][b] = min(most[a][b], most[a][by]+most[by][b])
				}
			}
		}
	}
	return most
}

// notAfter is the most by which the clock of a can be ahead of that of b: a was out of a collective
// that b had entered before.
func notAfter(a, b *past) int64 {
	most, next := int64(never), b.order
	for _, i := range a.order {
		c := &a.calls[i]
		for len(next) > 0 && b.calls[next[0]].compare(c.callKey) < 0 {
			next = next[1:]
		}
		if len(next) > 0 && b.calls[next[0]].callKey == c.callKey && c.out != 0 {
			most = min(most, c.out-b.calls[next[0]].at)
		}
	}
	return most
}
