// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Job is a job that was run until nothing moved.
type Job struct {
	*run
	truth Truth
	hits  []*hit
	rng   *rand.Rand
	// last is when the last thing happened, Unix ns.
	last int64
}

// tries bounds how often another place is looked for where a fault did not take hold: a
// skipped operation can be made up for by the next.
const tries = 40

// Run executes a job with a fault of a family.
func Run(l Layout, family string, seed uint64) (*Job, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	g := newGrid(l)
	rng := rand.New(rand.NewPCG(seed, 0x6c6f636b73746570)) //nolint:gosec // repeatable on purpose
	byStage := make([][]instr, g.PP)
	for s := range byStage {
		byStage[s] = g.program(s)
	}
	var err error
	for range tries {
		programs := make([][]instr, g.world)
		for r := range programs {
			programs[r] = byStage[g.stage(r)]
		}
		var j *Job
		if j, err = attempt(g, programs, family, rng); err == nil {
			return j, nil
		}
	}
	return nil, fmt.Errorf("run job %s with %s: %w", l.Name, family, err)
}

// World returns how many ranks the job has.
func (j *Job) World() int { return j.world }

// Last returns when the last thing happened, Unix ns.
func (j *Job) Last() int64 { return j.last }

func attempt(g *grid, programs [][]instr, family string, rng *rand.Rand) (*Job, error) {
	hits, err := place(g, programs, family, rng)
	if err != nil {
		return nil, err
	}
	x := newRun(g, programs)
	for _, h := range hits {
		if h.what == stallInstance {
			x.stalled[h.where(g, programs[h.rank])] = true
		}
		x.ranks[h.rank].hit = h
	}
	x.execute()
	j := &Job{run: x, hits: hits, rng: rng, last: x.lastMove}
	if err := j.tookHold(family); err != nil {
		return nil, err
	}
	j.truth = j.makeTruth(family)
	return j, nil
}

// place puts the faults of a family into the programs.
func place(g *grid, programs [][]instr, family string, rng *rand.Rand) ([]*hit, error) {
	list := map[string][]string{
		Healthy: {}, HostsStuck: {HostStuck, HostStuck}, TwoFaults: {HostStuck, DeviceStopped}, WrongOpTwo: {WrongOp},
	}
	parts, several := list[family]
	if !several {
		parts = []string{family}
	}
	var hits []*hit
	var taken []int
	for _, name := range parts {
		pl, ok := plans[name]
		if !ok {
			return nil, fmt.Errorf("place fault: got family %q; want one of Families", name)
		}
		r, i, err := pl.pick(g, programs, rng, taken)
		if err != nil {
			return nil, err
		}
		h := &hit{family: name, what: pl.what, rank: r, instr: i, until: i, away: name == WrongPeer}
		h.op = g.opRef(r, programs[r], i)
		for _, m := range programs[r][i].msgs {
			h.others = append(h.others, int64(g.neighbour(r, m.to)), int64(g.neighbour(r, -m.to)))
		}
		h.lag(g, programs[r], name, rng)
		if pl.change != nil {
			programs[r] = pl.change(g, r, programs[r], i)
		}
		hits = append(hits, h)
		taken = append(taken, r)
		if family == WrongOpTwo {
			twin, err := g.twin(h, programs, pl)
			if err != nil {
				return nil, err
			}
			hits = append(hits, twin)
		}
		if len(parts) > 1 {
			taken = g.close(r)
		}
	}
	return hits, nil
}

// lag makes the device of a stopped one take part in some operations that it never sees
// the end of.
func (h *hit) lag(g *grid, p []instr, name string, rng *rand.Rand) {
	if name != DeviceStopped {
		return
	}
	more := 1 + rng.IntN(4)
	k := p[h.instr].kind
	for i := h.instr + 1; i < len(p) && more > 0; i++ {
		if blocking(g, h.rank, p, i) {
			h.until = i
			if p[i].kind == k {
				more--
			}
		}
	}
}

// twin makes another member of the same group do the same wrong.
func (g *grid) twin(h *hit, programs [][]instr, pl plan) (*hit, error) {
	k := programs[h.rank][h.instr].kind
	ranks := g.groups[g.places[h.rank][k].group].ranks
	if len(ranks) < 5 {
		return nil, fmt.Errorf("%w: got a group of %d; want at least 5, so that two are the fewer", ErrNoPlace, len(ranks))
	}
	r := int(ranks[(slices.Index(ranks, int64(h.rank))+1)%len(ranks)])
	if g.stage(r) != g.stage(h.rank) {
		return nil, fmt.Errorf("%w: rank %d has another program than %d", ErrNoPlace, r, h.rank)
	}
	t := *h
	t.rank = r
	programs[r] = pl.change(g, r, programs[r], h.instr)
	return &t, nil
}

// close returns the ranks that share a small group with one: a second fault there would not
// be reached.
func (g *grid) close(r int) []int {
	var out []int
	for k := tensor; k < kinds; k++ {
		if p := g.places[r][k]; p.group >= 0 && (k != data || g.DP < g.world) {
			for _, m := range g.groups[p.group].ranks {
				out = append(out, int(m))
			}
		}
	}
	return append(out, r)
}

// where names the operation of an instruction that is a collective.
func (h *hit) where(g *grid, p []instr) place64 {
	k := p[h.instr].kind
	return place64{g.places[h.rank][k].group, calls(p, h.instr, k)}
}

// calls counts the collectives of a kind up to and with an instruction.
func calls(p []instr, i int, k kind) (n int64) {
	for j := range p[:i+1] {
		if p[j].do == call && p[j].kind == k {
			n++
		}
	}
	return n
}

func (g *grid) opRef(r int, p []instr, i int) OpRef {
	in := &p[i]
	if in.do != call && in.do != post {
		return OpRef{}
	}
	gr := &g.groups[g.places[r][in.kind].group]
	o := OpRef{Group: gr.name, Desc: descs[gr.kind], Name: in.name}
	if in.do == call {
		o.Seq = calls(p, i, in.kind)
	}
	return o
}
