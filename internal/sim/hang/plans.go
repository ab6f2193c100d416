// SPDX-License-Identifier: Apache-2.0

package hang

import "slices"

// plans are the families that hit one rank in one way.
var plans = map[string]plan{
	HostStuck:     {what: stopHost, fits: anyCall},
	ProcessDead:   {what: stopHost, fits: anyCall},
	NoDump:        {what: stopHost, fits: anyCall},
	DeviceStopped: {what: stopDevice, fits: symmetricCall},
	DeviceOne:     {what: stopDevice, fits: symmetricCall},
	DeviceSilent: {what: silenceDevice, fits: func(g *grid, _ int, p []instr, i int) bool {
		return p[i].do == work && !g.Gloo
	}},
	StalledOp: {what: stallInstance, fits: blocking},
	Network:   {what: stallInstance, fits: blocking},
	StalledMessage: {what: stallMessage, fits: func(_ *grid, _ int, p []instr, i int) bool {
		return p[i].do == post
	}},
	WrongOp: {fits: steady, change: func(_ *grid, _ int, p []instr, i int) []instr {
		return edit(p, i, func(in *instr) {
			if in.name == "all_reduce" {
				in.name, in.out = "_all_gather_base", in.in
			} else {
				in.name, in.out = "all_reduce", in.in
			}
		})
	}},
	WrongSize: {fits: steady, change: resize(3, 2)},
	WrongSizeShort: {what: shorten, fits: func(g *grid, r int, p []instr, i int) bool {
		return steady(g, r, p, i) && p[i].in[0] > 1
	}, change: resize(1, 2)},
	WrongDType: {fits: steady, change: func(_ *grid, _ int, p []instr, i int) []instr {
		return edit(p, i, func(in *instr) {
			if in.dtype == "Float" {
				in.dtype = "Double"
			} else {
				in.dtype = "Float"
			}
		})
	}},
	WrongRoot: {
		fits: func(_ *grid, _ int, p []instr, i int) bool { return p[i].do == call && p[i].name == "broadcast" },
		change: func(_ *grid, _ int, p []instr, i int) []instr {
			return edit(p, i, func(in *instr) { in.root = 1 })
		},
	},
	UnevenSplit: {
		what: stallInstance, fits: func(_ *grid, _ int, p []instr, i int) bool { return p[i].uneven },
		change: func(_ *grid, _ int, p []instr, i int) []instr {
			return edit(p, i, func(in *instr) { in.in[0] += 64 })
		},
	},
	SwappedGroups: {fits: nested, change: swapNext},
	SwappedOps:    {fits: twoOfOne, change: swapNext},
	SkippedOp: {fits: blocking, change: func(_ *grid, _ int, p []instr, i int) []instr {
		return slices.Delete(slices.Clone(p), i, i+1)
	}},
	ExtraOp: {fits: blocking, change: func(_ *grid, _ int, p []instr, i int) []instr {
		more := p[i]
		more.name, more.in, more.out, more.dtype, more.uneven = "all_reduce", []int64{3}, []int64{3}, "Float", false
		return slices.Insert(slices.Clone(p), i, more)
	}},
	NoRecv: {fits: receives, change: dropRecv},
	WrongPeer: {fits: func(g *grid, _ int, p []instr, i int) bool {
		return g.PP > 2 && p[i].do == post && len(p[i].msgs) == 1
	}},
	WrongMessage: {fits: func(_ *grid, _ int, p []instr, i int) bool {
		return p[i].do == post && len(p[i].msgs) == 1
	}, change: func(_ *grid, _ int, p []instr, i int) []instr {
		return edit(p, i, func(in *instr) { in.in[0] /= 2; in.out[0] /= 2 })
	}},
	InitStuck: {what: stopHost, fits: func(_ *grid, _ int, p []instr, i int) bool {
		return p[i].kind == embedding && p[i].step == 1 && p[i].do == call
	}},
}

func anyCall(_ *grid, _ int, p []instr, i int) bool { return p[i].do == call || p[i].do == launch }

// symmetricCall is one of a device: Gloo has none.
func symmetricCall(g *grid, r int, p []instr, i int) bool { return blocking(g, r, p, i) && !g.Gloo }

func resize(num, den int64) func(*grid, int, []instr, int) []instr {
	return func(_ *grid, _ int, p []instr, i int) []instr {
		return edit(p, i, func(in *instr) {
			in.in[0] = max(1, in.in[0]*num/den)
			in.out[0] = max(1, in.out[0]*num/den)
		})
	}
}

// next returns the call that follows with nothing but work between, or -1.
func next(p []instr, i int) int {
	for j := i + 1; j < len(p); j++ {
		switch p[j].do {
		case work:
		case call:
			return j
		default:
			return -1
		}
	}
	return -1
}

// nested: this call and the next are in two groups that share more than this rank, and both
// hold up what follows.
func nested(g *grid, r int, p []instr, i int) bool {
	j := next(p, i)
	if j < 0 || !blocking(g, r, p, i) || !blocking(g, r, p, j) || p[i].kind == p[j].kind {
		return false
	}
	a, b := g.groups[g.places[r][p[i].kind].group].ranks, g.groups[g.places[r][p[j].kind].group].ranks
	common := 0
	for _, m := range a {
		if slices.Contains(b, m) {
			common++
		}
	}
	return common > 1
}

// twoOfOne: this call and the next are in one group, and differ.
func twoOfOne(g *grid, r int, p []instr, i int) bool {
	j := next(p, i)
	return j > 0 && steady(g, r, p, i) && steady(g, r, p, j) && p[i].kind == p[j].kind && signatureOf(&p[i]) != signatureOf(&p[j])
}

func swapNext(_ *grid, _ int, p []instr, i int) []instr {
	p = slices.Clone(p)
	j := next(p, i)
	p[i], p[j] = p[j], p[i]
	return p
}

func receives(_ *grid, _ int, p []instr, i int) bool {
	return p[i].do == post && slices.ContainsFunc(p[i].msgs, func(m message) bool { return !m.send })
}

func dropRecv(_ *grid, _ int, p []instr, i int) []instr {
	q := edit(p, i, func(in *instr) {
		in.msgs = slices.DeleteFunc(in.msgs, func(m message) bool { return !m.send })
	})
	if len(q[i].msgs) == 0 {
		return slices.Delete(q, i, i+1)
	}
	return q
}

// turned: this is the message that goes the wrong way.
func (h *hit) turned(i int) bool { return h.away && h.instr == i }
