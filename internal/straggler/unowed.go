// SPDX-License-Identifier: Apache-2.0

package straggler

// Unowed counts the meetings whose waits are owed to nobody, by why.
type Unowed struct {
	Members int // some member was not seen, and may have come last
	Clocks  int // of its members nothing relates
	Order   int // some member left before another came: stamps are wrong
	Kind    int // not everybody waits for everybody, and the root is not known
	// Share is what part of the step ranks that were not seen can cost at most: all that
	// those seen were exposed to communication. Beyond Want it could be worth telling.
	Share, Want float64
}

// Harmless reports whether all that is unknown are ranks that were not seen, and these cost
// too little to be told.
func (u *Unowed) Harmless() bool {
	return u.Members > 0 && u.Clocks == 0 && u.Order == 0 && u.Kind == 0 && u.Share < u.Want
}

// count adds the meetings of a step.
func (u *Unowed) count(meetings []*meeting) {
	for _, m := range meetings {
		switch {
		case m.attributed:
		case m.impossible:
			u.Order++
		case m.rule == waitNobody:
			u.Kind++
		case !m.comparable():
			u.Clocks++
		default:
			u.Members++
		}
	}
}

// exposed returns what part of the step a rank that was not seen can have cost at most. It holds
// up the members of its communicators, each for as long as it was exposed to communication, so
// that the least exposed of them bounds it. A rank whose operation met nobody may have waited
// for it alone.
func (rec *record) exposed(views []*rankView, meetings []*meeting) float64 {
	least := map[uint32]int64{} // by communicator
	var alone int64
	for _, m := range meetings {
		if m.attributed {
			continue
		}
		for i := range m.parties {
			p := &m.parties[i]
			of, spent := p.op.form.group, rec.ranks[p.at.index].communicated
			if was, ok := least[of]; !ok || spent < was {
				least[of] = spent
			}
		}
	}
	for i, v := range views {
		if len(v.met) < len(v.comms) {
			alone = max(alone, rec.ranks[i].communicated)
		}
	}
	for _, spent := range least {
		alone = max(alone, spent)
	}
	return float64(alone) / float64(max(1, rec.end-rec.start))
}

// unowedReport returns why waits are owed to nobody. Of fewer steps than are compared, and of two
// ranks, nobody was judged. All steps are asked, and the last ones apart: what began lately would
// be little of all.
func (j *job) unowedReport() Unowed {
	u := j.unowed
	if u.Share, u.Want = 1, j.e.cfg.MinCostShare; len(j.window) >= minTrials && len(j.ranks) > fewPeers {
		lately := 0.0
		for _, rec := range j.window {
			lately += rec.unseen / float64(len(j.window))
		}
		u.Share = min(1, max(lately, j.unseen/float64(j.steps)))
	}
	return u
}
