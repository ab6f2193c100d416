// SPDX-License-Identifier: Apache-2.0

package training

const (
	launchDelay = 6e3 // ns from a launch to the earliest begin
	launchCost  = 9e3 // ns that the host takes for one
	readDelay   = 1e4 // ns until the host goes on with a value that it waited for
)

// simulate runs the programs of all ranks for one step. A rank runs as far as what it
// needs is known; a meeting is known once its last member has come, and then those
// that wait for it go on. Programs meet in one order, so that none waits for ever.
func (j *Job) simulate() {
	clear(j.meetings)
	j.runnable = j.runnable[:0]
	for r := j.world - 1; r >= 0; r-- {
		j.start(r)
		j.runnable = append(j.runnable, int32(r))
	}
	for len(j.runnable) > 0 {
		r := j.runnable[len(j.runnable)-1]
		j.runnable = j.runnable[:len(j.runnable)-1]
		j.advance(int(r))
	}
	for r := range j.states {
		j.settle(r)
	}
}

func (j *Job) start(r int) {
	s, e := &j.states[r], &j.effects[r]
	s.pc, s.insides = 0, 0
	s.begin = s.host
	s.paused, s.kept = [2]float64{}, [2]float64{}
	s.draws = hash(hash(j.seed, forKernel, uint64(r)), uint64(j.n), 0)
	s.slowed = s.chip * e.device * (1 + j.spec.Noise.Drift*j.wave(r))
	if e.keep > 0 {
		s.kept = [2]float64{s.host, s.host + e.keep}
		s.host += e.keep
	}
}

// wave is a device's slow change, from -1 to 1 over some hundred steps.
func (j *Job) wave(r int) float64 {
	h := hash(j.seed, forDrift, uint64(r))
	period := 150 + 250*unit(h)
	at := float64(j.n)/period + unit(mix(h))
	at -= float64(int64(at))
	return 4*abs(at-0.5) - 1
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}

// advance runs a rank until it is done or must know the end of a meeting.
func (j *Job) advance(r int) {
	s := &j.states[r]
	p := j.programs[s.stage]
	at := j.times[r*j.stride : r*j.stride+len(p.items)]
	for int(s.pc) < len(p.items) {
		i := s.pc
		it, t := &p.items[i], &at[i]
		t.end = 0
		switch it.kind {
		case itemHost:
			s.host += it.nanos
		case itemData:
			j.loadData(r, s, it)
		case itemBegin:
			t.start = s.host
		case itemEnd:
			at[it.begin].end = s.host
		case itemSync:
			j.sync(s)
		case itemKernel:
			if !j.compute(r, s, it, t, i) {
				return
			}
		case itemComm:
			if !j.arrive(r, s, it, t, i) {
				return
			}
		}
		s.pc++
		j.maybePause(r, s, len(p.items))
	}
}

func (j *Job) loadData(r int, s *state, it *item) {
	s.host += it.nanos*lognormal(hash(s.draws, forData, 0), j.spec.Noise.Data) + j.effects[r].data
}

func (j *Job) maybePause(r int, s *state, items int) {
	e := &j.effects[r]
	if e.pause > 0 && s.paused[1] == 0 && float64(s.pc) > e.pauseAt*float64(items) {
		s.paused = [2]float64{s.host, s.host + e.pause}
		s.host += e.pause
	}
}

// launch lets the host launch an item.
func (j *Job) launch(r int, s *state, i int32) float64 {
	at := s.host
	h := mix(s.draws ^ uint64(i)<<20 ^ forLaunch)
	cost := launchCost * lognormal(h, j.spec.Noise.Launch)
	if e := &j.effects[r]; e.launch != 1 {
		cost *= e.launch * (0.5 + unit(mix(h)))
	}
	if n := j.spec.Noise.Hiccup; n > 0 && float64(h>>32)/(1<<32) < n {
		cost += 1e5 + 9e5*unit(mix(h))
	}
	s.host += cost
	return at
}

// compute launches a kernel; false where what it waits for is not known yet.
func (j *Job) compute(r int, s *state, it *item, t *times, i int32) bool {
	from := s.free[streamCompute]
	for _, dep := range it.after {
		if dep == none {
			continue
		}
		end, ok := j.ended(r, s, dep)
		if !ok {
			return false
		}
		from = max(from, end)
	}
	// Nothing of the launch is drawn before all is known: the item may be tried again.
	start := max(from, s.host+launchDelay)
	length := it.nanos * j.amount(r, it) * s.slowed
	h := mix(s.draws + uint64(i)*0x9e3779b97f4a7c15)
	length *= lognormal(h, j.spec.Noise.Kernel)
	if e := &j.effects[r]; e.kernel == it.kernel {
		length *= e.factor
	}
	length += j.spec.Noise.Tails.tail(h, length)
	end := start + length
	if s.insides > 0 {
		var ok bool
		if end, ok = j.beside(r, s, start, length); !ok {
			return false
		}
	}
	t.launch = j.launch(r, s, i)
	t.start, t.end = start, end
	s.free[streamCompute] = end
	return true
}

// amount is how much of the usual work an item has.
func (j *Job) amount(r int, it *item) float64 {
	switch it.work {
	case workPairs:
		return j.pairs[j.share(r, it)]
	case workTokens:
		return j.tokens[j.share(r, it)]
	case workExperts:
		return j.loadOf(r, it.layer)
	}
	return 1
}

func (j *Job) share(r int, it *item) int { return j.dp(r)*j.Microbatches + int(max(it.mb, 0)) }

// beside returns the end of a kernel that communication slows while both run.
func (j *Job) beside(r int, s *state, start, length float64) (float64, bool) {
	slower := 1 + j.spec.Noise.Beside
	at, left := start, length
	kept, inside := int8(0), [len(s.inside)]int32{}
	for n := range s.insides {
		c := s.inside[n]
		t := &j.times[r*j.stride+int(c)]
		if left > 0 && t.start > at {
			alone := min(left, t.start-at)
			at += alone
			left -= alone
		}
		if t.start >= at && left == 0 {
			inside[kept] = c
			kept++
			continue
		}
		end, ok := j.ended(r, s, c)
		if !ok {
			return 0, false
		}
		if end <= start {
			continue // over
		}
		inside[kept] = c
		kept++
		both := min(left, max(0, end-at)/slower)
		at += both * slower
		left -= both
	}
	s.inside, s.insides = inside, kept
	return at + left, true
}

// ended returns when an item ended, if that is known; else the rank waits for it.
func (j *Job) ended(r int, s *state, i int32) (float64, bool) {
	t := &j.times[r*j.stride+int(i)]
	if t.end > 0 {
		return t.end, true
	}
	it := &j.programs[s.stage].items[i]
	m := &j.meetings[j.meeting(r, it)]
	if m.end == 0 {
		s.waiting = m.waiters
		m.waiters = int32(r) + 1
		return 0, false
	}
	t.end = j.left(r, it, m)
	return t.end, true
}

// left is when a member leaves a meeting: some microseconds after it is over.
func (j *Job) left(r int, it *item, m *meeting) float64 {
	return m.end + 2e3*unit(hash(j.states[r].draws, forEnd, uint64(it.slot)<<8|uint64(it.comm)))
}

// meeting returns which meeting an item is part of.
func (j *Job) meeting(r int, it *item) int {
	if it.comm == commPP {
		to := r
		if it.fn == fnSend {
			to = j.rankAt(int(it.peer), j.dp(r), j.tp(r))
		}
		return j.base[commPP] + to*j.slots[commPP] + int(it.slot)
	}
	g, _ := j.group(it.comm, r)
	return j.base[it.comm] + g*j.slots[it.comm] + int(it.slot)
}

// arrive launches communication and joins its meeting; false where the end of what is
// before it on its stream is not known yet.
func (j *Job) arrive(r int, s *state, it *item, t *times, i int32) bool {
	from := s.free[it.stream]
	for _, dep := range [...]int32{s.last[it.stream], it.after[0], it.after[1]} {
		if dep == none {
			continue
		}
		end, ok := j.ended(r, s, dep)
		if !ok {
			return false
		}
		from = max(from, end)
	}
	t.start = max(from, s.host+launchDelay)
	t.launch = j.launch(r, s, i)
	s.last[it.stream] = i
	if it.beside {
		s.holdInside(i)
	}
	m := &j.meetings[j.meeting(r, it)]
	m.last = max(m.last, t.start)
	m.arrived++
	if m.arrived == j.needed(it) {
		j.meet(r, it, m)
	}
	return true
}

func (j *Job) needed(it *item) int32 {
	if it.comm == commPP {
		return 2
	}
	return int32(j.size(it.comm))
}

// holdInside notes communication that may run beside what is computed next. Where so
// much is queued that there is no room, the last of it is far off.
func (s *state) holdInside(i int32) {
	if int(s.insides) < len(s.inside) {
		s.inside[s.insides] = i
		s.insides++
	}
}

// meet ends a meeting and lets those go on that wait for it.
func (j *Job) meet(r int, it *item, m *meeting) {
	luck := lognormal(hash(hash(j.seed, forNetwork, uint64(j.n)), j.identity(r, it), uint64(it.slot)), j.spec.Noise.Network)
	var delay, wire float64
	if it.comm == commPP {
		delay, wire = j.messageTime(r, it)
	} else {
		g, _ := j.group(it.comm, r)
		delay, wire = j.transfer(it.comm, g, it)
		wire *= j.slow[it.comm][g]
		if it.fn == fnAllToAll {
			wire *= j.busiest(g, it)
		}
	}
	m.end = m.last + (delay+wire)*luck
	for w := m.waiters; w != 0; {
		waiter := w - 1
		w = j.states[waiter].waiting
		j.runnable = append(j.runnable, waiter)
	}
	m.waiters = 0
}

// identity numbers a communicator, or the receiver of a message.
func (j *Job) identity(r int, it *item) uint64 {
	g, _ := j.group(it.comm, r)
	if it.comm == commPP {
		if g = r; it.fn == fnSend {
			g = j.rankAt(int(it.peer), j.dp(r), j.tp(r))
		}
	}
	return uint64(g)<<8 | uint64(it.comm)
}

// busiest is how much more the member gets that gets most in an exchange of tokens.
func (j *Job) busiest(group int, it *item) float64 {
	most := 0.0
	for i := range j.EP {
		most = max(most, j.loadOf(j.member(commEP, group, i), it.layer))
	}
	return most
}

// messageTime returns the delay and the time on the wire of a message.
func (j *Job) messageTime(r int, it *item) (delay, wire float64) {
	other := j.rankAt(int(it.peer), j.dp(r), j.tp(r))
	src, dst := r, other
	if it.fn == fnRecv {
		src, dst = other, r
	}
	if j.node(src) == j.node(dst) {
		return insideDelay, it.bytes / insideSpeed
	}
	return cardDelay, it.bytes / cardSpeed * j.hop(src, dst, false)
}

// sync lets the host wait for its device.
func (j *Job) sync(s *state) {
	if j.spec.Sync == SyncLag {
		s.host = max(s.host, s.before)
		return
	}
	s.host = max(s.host, s.free[streamCompute]) + readDelay
}

// settle notes when each stream is free again, once all meetings are over.
func (j *Job) settle(r int) {
	s := &j.states[r]
	s.before, s.device = s.device, s.free[streamCompute]
	for n, i := range s.last {
		if i == none {
			continue
		}
		end, ok := j.ended(r, s, i)
		if !ok {
			panic("training: a rank waits for a meeting that nobody else came to")
		}
		s.free[n] = max(s.free[n], end)
		s.device = max(s.device, end)
		s.last[n] = none
	}
}
