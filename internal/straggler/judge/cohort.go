// SPDX-License-Identifier: Apache-2.0

package judge

// cohort are rows of a step that are compared with each other.
type cohort struct {
	key     cohortKey
	rung    Rung
	members []int32 // rows
	judged  []int32 // of them, those that have no better peers
}

// cohortKey is what the rows of a cohort have in common.
type cohortKey struct {
	role           uint64
	pp, tp, cp, ep int32
	level          int8
}

// Levels of the ladder, before kernels and history.
const (
	levelSiblings = int8(iota) // differ in their data-parallel rank only
	levelRole                  // symmetric members of the role
	levelStage
	levels
)

// minCohort is with how many rows a cohort tells who of them is the odd one out: two
// that differ do not say which is as it should be.
const minCohort = 3

func keyOf(r *Row, level int8) cohortKey {
	k := cohortKey{role: r.Role, pp: r.PP, tp: -1, cp: -1, ep: -1, level: level}
	switch level {
	case levelSiblings:
		k.tp, k.cp, k.ep = r.TP, r.CP, r.EP
	case levelStage:
		k.role = 0
	}
	return k
}

// ladder sorts the rows of a step into cohorts.
type ladder struct {
	byKey   map[cohortKey]int32
	cohorts []cohort
	at      [levels][]int32 // by row, its cohort
}

// climb puts each row on the first rung that has peers enough. Rows that have none are
// members of a cohort of one or two, that of their role.
func (l *ladder) climb(rows []*Row) []cohort {
	if l.byKey == nil {
		l.byKey = map[cohortKey]int32{}
	}
	clear(l.byKey)
	l.cohorts = l.cohorts[:0]
	for level := range levels {
		l.at[level] = grown(l.at[level], len(rows))
		for i, r := range rows {
			l.at[level][i] = l.join(keyOf(r, level), int32(i))
		}
	}
	for i := range rows {
		best := l.at[levelRole][i]
		for level := range levels {
			if c := l.at[level][i]; len(l.cohorts[c].members) >= minCohort && (level < levelStage || rows[i].PP >= 0) {
				best = c
				break
			}
		}
		c := &l.cohorts[best]
		c.judged = append(c.judged, int32(i))
	}
	return l.cohorts
}

func (l *ladder) join(k cohortKey, row int32) int32 {
	n, ok := l.byKey[k]
	if !ok {
		n = int32(len(l.cohorts))
		l.byKey[k] = n
		if len(l.cohorts) < cap(l.cohorts) {
			l.cohorts = l.cohorts[:n+1]
		} else {
			l.cohorts = append(l.cohorts, cohort{})
		}
		c := &l.cohorts[n]
		c.key = k
		c.rung, c.members, c.judged = RungMembers, c.members[:0], c.judged[:0]
		if k.level == levelSiblings {
			c.rung = RungRole
		}
	}
	c := &l.cohorts[n]
	c.members = append(c.members, row)
	return n
}

// grown returns a slice of n elements, the old one's memory where it is enough.
func grown[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n, n+n/4)
	}
	return v[:n]
}
