// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// Names of what ranks tell, in the order in which they are judged.
const (
	FieldStep          = "step"
	FieldOptimizerStep = "optimizer_step"
	FieldDataCursor    = "data_cursor"
	FieldRNGDigest     = "rng_digest"
)

// Bounds of what a judgement lists.
const (
	maxRanks  = 64 // as many as a finding
	maxFields = 16 // one for each replica may disagree
	maxHeld   = 16
)

// Judgement is what the ranks of an incarnation together have loaded.
type Judgement struct {
	Verdict epoch.Verdict
	// Fields are those in which ranks disagree, at most maxFields of FieldsCount.
	Fields      []Field
	FieldsCount int
	Ranks       int // that were compared with each other
	Of          int // that there are; 0: nobody said
	Apart       int // that loaded more or less often, and were compared with others or nobody
	// Minority are the ranks that hold another value than the majority, ascending, where one is
	// known; Hosts and HWIDs are theirs.
	Minority      []int64
	MinorityCount int
	Hosts, HWIDs  []string

	number int64 // of the load that was judged
}

// Field is a value in which ranks disagree.
type Field struct {
	Name    string
	Replica string // of whose ranks; empty: of all
	Held    []Held // that of most ranks first, at most maxHeld of HeldCount
	// HeldCount is how many values there are, Told how many ranks told one.
	HeldCount, Told int
	// Decided: the first of Held is that of most of all ranks that there are, whatever those hold
	// that are silent. Else nobody can be called the wrong side.
	Decided bool
}

// Held is one value, and who holds it: the first ranks, ascending.
type Held struct {
	Value string
	Ranks []int64
	Count int
}

// member is one rank in a round.
type member struct {
	rank int64
	*life
}

// Judge judges an incarnation: the newest round in which ranks disagree, else the newest.
func (e *Engine) Judge(k Key) Judgement {
	in := e.held[k]
	if in == nil {
		return Judgement{Verdict: epoch.Unknown}
	}
	rounds := map[round][]member{}
	for _, n := range slices.Sorted(maps.Keys(in.ranks)) {
		r := in.ranks[n]
		rounds[r.round()] = append(rounds[r.round()], member{n, r.current()})
	}
	order := slices.SortedFunc(maps.Keys(rounds), func(a, b round) int {
		if a.later(b) {
			return -1
		}
		return 1
	})
	var newest Judgement
	for i, at := range order {
		j := in.judge(rounds[at])
		j.number = at.number
		j.Apart = len(in.ranks) - len(rounds[at])
		if j.Verdict == epoch.MixedEpoch {
			return j
		}
		if i == 0 {
			newest = j
		}
	}
	if newest.Apart > 0 && newest.Verdict == epoch.Converged {
		newest.Verdict = epoch.Converging
	}
	return newest
}

func (in *incarnation) judge(members []member) Judgement {
	j := Judgement{Ranks: len(members), Of: int(in.of), Verdict: epoch.Unknown}
	wrong := map[int64]*life{}
	number := func(of func(*life) epoch.Agreement) func(*life) (string, bool) {
		return func(l *life) (string, bool) {
			v, ok := of(l).Value()
			return strconv.FormatInt(v, 10), ok
		}
	}
	all := max(len(members), int(in.of))
	told := j.compare(FieldStep, "", members, all, number(func(l *life) epoch.Agreement { return l.step }), wrong)
	j.compare(FieldOptimizerStep, "", members, all, number(func(l *life) epoch.Agreement { return l.optimizer }), wrong)
	j.replicas(members, len(members) >= int(in.of), wrong)
	switch {
	case j.FieldsCount > 0:
		j.Verdict = epoch.MixedEpoch
	case told == 0:
	case told == int(in.of) && len(members) == told && !in.tainted:
		j.Verdict = epoch.Converged
	default:
		j.Verdict = epoch.Converging
	}
	j.name(wrong)
	return j
}

// replicas compares what only those must agree on that say so. How many they are is known once
// all ranks have told.
func (j *Judgement) replicas(members []member, complete bool, wrong map[int64]*life) {
	groups := map[string][]member{}
	for _, m := range members {
		if name, ok := m.replica.Value(); ok {
			groups[name] = append(groups[name], m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := groups[name]
		all := len(group)
		if !complete { // any of the others may be of it
			all = 2 * len(group)
		}
		j.compare(FieldDataCursor, name, group, all, func(l *life) (string, bool) { return l.cursor.Value() }, wrong)
		j.compare(FieldRNGDigest, name, group, all, func(l *life) (string, bool) { return l.rng.Value() }, wrong)
	}
}

// compare joins one value of some ranks, of which there are so many in all, and notes who does not
// hold that of the majority. It returns how many told one.
func (j *Judgement) compare(name, replica string, members []member, all int, value func(*life) (string, bool), wrong map[int64]*life) (told int) {
	var joined epoch.Flat[string]
	for _, m := range members {
		if v, ok := value(m.life); ok {
			joined = joined.Join(epoch.Of(v))
			told++
		}
	}
	if !joined.Mixed() {
		return told
	}
	f := Field{Name: name, Replica: replica, Told: told, Held: tally(members, value)}
	f.HeldCount = len(f.Held)
	if f.Decided = 2*f.Held[0].Count > all; f.Decided {
		for _, m := range members {
			if v, ok := value(m.life); ok && v != f.Held[0].Value {
				wrong[m.rank] = m.life
			}
		}
	}
	f.Held = f.Held[:min(len(f.Held), maxHeld)]
	if j.FieldsCount++; len(j.Fields) < maxFields {
		j.Fields = append(j.Fields, f)
	}
	return told
}

// tally counts values; those of equally many ranks are in the order of numbers, or else of texts.
func tally(members []member, value func(*life) (string, bool)) []Held {
	at := map[string]int{}
	var held []Held
	for _, m := range members {
		v, ok := value(m.life)
		if !ok {
			continue
		}
		i, known := at[v]
		if !known {
			i, at[v] = len(held), len(held)
			held = append(held, Held{Value: v})
		}
		h := &held[i]
		if h.Count++; len(h.Ranks) < maxRanks {
			h.Ranks = append(h.Ranks, m.rank)
		}
	}
	slices.SortFunc(held, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(len(a.Value), len(b.Value)), cmp.Compare(a.Value, b.Value))
	})
	return held
}

// name lists who does not hold what most do.
func (j *Judgement) name(wrong map[int64]*life) {
	j.MinorityCount = len(wrong)
	hosts, hwids := map[string]bool{}, map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(wrong)) {
		if len(j.Minority) < maxRanks {
			j.Minority = append(j.Minority, n)
		}
		hosts[wrong[n].host], hwids[wrong[n].hwid] = true, true
	}
	j.Hosts, j.HWIDs = sorted(hosts), sorted(hwids)
}

func sorted(set map[string]bool) []string {
	delete(set, "") // not known
	list := slices.Sorted(maps.Keys(set))
	return list[:min(len(list), maxRanks)]
}
