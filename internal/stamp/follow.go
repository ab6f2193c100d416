// SPDX-License-Identifier: Apache-2.0

package stamp

// How often a stamp is told, so that one lost packet loses none, and how many
// wait: stamps come in batches when a socket is drained late.
const (
	tellTimes   = 2
	keepFollows = 32
)

// follows are the stamps of this end that later packets of the session tell of,
// oldest first.
type follows struct {
	q [keepFollows]struct {
		Follow
		told uint8
	}
	n int
}

// add queues a stamp; false where that pushed one out that was never told.
func (f *follows) add(seq uint32, s Stamp) bool {
	kept := true
	if f.n == keepFollows {
		kept = f.q[0].told > 0
		f.remove(0)
	}
	f.q[f.n].Follow = Follow{Seq: seq, Sent: s.Raw, Kind: s.Kind, Width: s.Width}
	f.q[f.n].told = 0
	f.n++
	return kept
}

// fill moves what was told least into a TLV.
func (f *follows) fill(c *Clock) {
	for told := range uint8(tellTimes) {
		for i := 0; i < f.n && c.Count < MaxFollows; i++ {
			if f.q[i].told == told {
				c.Follows[c.Count] = f.q[i].Follow
				c.Count++
				f.q[i].told += tellTimes // marks it, so that the next round passes it by
			}
		}
	}
	for i := f.n - 1; i >= 0; i-- {
		if f.q[i].told >= tellTimes {
			f.q[i].told -= tellTimes - 1
		}
		if f.q[i].told >= tellTimes {
			f.remove(i)
		}
	}
}

func (f *follows) remove(i int) {
	copy(f.q[i:f.n-1], f.q[i+1:f.n])
	f.n--
}
