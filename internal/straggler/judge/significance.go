// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// noise is what ranks of the job differ by, as shares of their peers' own time.
type noise struct {
	step    float64 // one rank's from step to step
	worker  float64 // between ranks, of their typical excess
	workers int
	prior   float64 // how many ranks workerSpread counts as
	memories
}

// Priors and floors of what is estimated from few.
const (
	// workerSpread is by what devices of one kind and healthy hosts differ: about one
	// percent (chips of one lot). It counts as much as priorWorkers ranks would.
	workerSpread = 0.01
	priorWorkers = 8
	// conflict is from what ratio of variances on that counts as less.
	conflict = 2
	// leastSpread is never undercut: where simulated or idle ranks are equal to the
	// nanosecond, a thousandth is no news.
	leastSpread = 0.0025
	// priorSteps is how many steps of its own the noise of all ranks counts for, at most,
	// in that of one (moderated variance; Smyth 2004).
	priorSteps = 4
	// timerFloor is by what sums of stamps of a step are uncertain, s.
	timerFloor = 2e-6
	// madWorth is how many values a mean square needs to be as precise as the median
	// absolute deviation of one more: its efficiency for normal values.
	madWorth = 0.37
)

// estimate finds the noise over those that are not named.
func (t *trial) estimate() {
	t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
	for i := range t.ranks {
		if s := &t.ranks[i]; !s.named {
			t.buf = append(t.buf, s.typical)
			t.buf2 = append(t.buf2, s.sigma)
		}
	}
	t.noise.workers, t.noise.prior = len(t.buf), priorWorkers
	if len(t.buf) == 0 {
		return
	}
	_, t.noise.worker = stats.Spread(t.buf)
	t.noise.step = stats.SelectMedian(t.buf2)
	t.noise.prior = t.priorWorth()
}

// priorWorth returns how many ranks it counts as by what devices differ. Before there is a
// block of steps nobody tells noise that lasts from what ranks differ by for good. Where they
// differ by more than devices do, and than steps that forget explain, it counts as fewer, and
// the ranks themselves say more (Evans and Moshonov 2006: a prior that the data contradict).
// What does not change from step to step is no noise, however long it may last.
func (t *trial) priorWorth() float64 {
	steps := len(t.frames)
	if steps >= MemoryBlock {
		return priorWorkers
	}
	step := sq(t.noise.step)
	forgets := sq(workerSpread) + sq(stats.MedianError)*step/float64(steps)
	lasts := sq(workerSpread) + step/max(leastOwn, 1-inflation(steps, mostMemory)/float64(steps))
	return priorWorkers / max(1, min(sq(t.noise.worker), lasts)/(conflict*forgets))
}

// test says how far a rank's excess is from what chance does.
type test struct {
	from, to int // frames
	steps    int
	share    float64 // typical
	mean     float64
	chance   float64 // corrected for ranks and looks
	z        float64
}

// ask tests a rank's share of excess in a stretch of frames. tries is of how many such
// stretches it is the best.
func (t *trial) ask(s *standing, from, to int, tries float64) test {
	out := test{from: from, to: to, chance: 1}
	t.buf = t.buf[:0]
	sum := 0.0
	t.over(s.n, from, to, func(e *entry) {
		x := e.share(e.net())
		sum += x
		t.buf = append(t.buf, x)
	})
	if out.steps = len(t.buf); out.steps < leastSteps {
		return out
	}
	out.mean = sum / float64(out.steps)
	var own float64
	out.share, own = stats.Spread(t.buf)
	var p float64
	out.z, p = t.chanceOf(out.share, own, out.steps, s.level)
	out.chance = min(1, p*float64(len(t.ranks)*t.looks)*tries*young(out.steps))
	return out
}

// youngSteps is below how many steps the spread over steps is known so badly that chances
// are raised, by the square of what is lacking.
const youngSteps = 8

func young(steps int) float64 { return sq(max(1, youngSteps/float64(max(1, steps)))) }

// leastOwn bounds by how much the variance that few steps with memory show is raised.
const leastOwn = 0.1

// chanceOf returns how many standard errors a typical share of excess is above zero,
// and how often chance gets there. The error has two parts: what ranks differ by, which
// no number of steps removes, and what a median over so many steps is uncertain by.
func (t *trial) chanceOf(share, own float64, steps int, level float64) (z, p float64) {
	worth := madWorth * float64(max(0, t.noise.workers-2))
	between := (t.noise.prior*sq(workerSpread) + worth*sq(t.noise.worker)) / (t.noise.prior + worth)
	between = max(between, sq(leastSpread), sq(timerFloor/max(level, leastBase)))
	inflated := inflation(steps, t.noise.likely)
	mine := madWorth * max(1, float64(steps)/inflated-1)
	if inflated > 1 {
		// Steps that are alike spread less than ranks do over long.
		own /= math.Sqrt(max(leastOwn, 1-inflated/float64(steps)))
	}
	shared := min(priorSteps, mine*float64(t.noise.workers))
	within := (shared*sq(max(t.noise.step, leastSpread)) + mine*sq(own)) / (shared + mine)
	within *= sq(stats.MedianError) * inflated / float64(steps)
	all := between + within
	// Satterthwaite's degrees of freedom of a sum of two estimates.
	nu := sq(all) / (sq(between)/(t.noise.prior+worth) + sq(within)/(shared+mine))
	z = share / math.Sqrt(all)
	return z, stats.StudentTail(z, nu)
}

func sq(x float64) float64 { return x * x }

// burstSteps is below how many steps single large excesses could be what a typical one
// is taken from, and burstSample how many other ranks tell how frequent these are.
const (
	burstSteps  = 2 * youngSteps
	burstSample = 256
)

// burst raises the chance of a test of few steps to that of so many large excesses in so
// few steps, going by how often other ranks have as large ones. Pauses have no normal
// tails: two in three steps happen.
func (t *trial) burst(s *standing, x *test, tries float64) {
	if x.steps >= burstSteps {
		return
	}
	limit := x.share / 2
	count := func(n int32, from, to int) (k, all int) {
		t.over(n, from, to, func(e *entry) {
			all++
			if e.share(e.net()) > limit {
				k++
			}
		})
		return k, all
	}
	k, n := count(s.n, x.from, x.to)
	others, steps := 0, 0
	stride := max(1, len(t.ranks)/burstSample)
	for i := 0; i < len(t.ranks); i += stride {
		if o := &t.ranks[i]; o.n != s.n && !o.named {
			e, all := count(o.n, 0, len(t.frames))
			others, steps = others+e, steps+all
		}
	}
	rate := float64(others+1) / float64(steps+1)
	if inflated := inflation(n, t.noise.likely); inflated > 1 {
		k, n = int(math.Ceil(float64(k)/inflated)), int(math.Ceil(float64(n)/inflated))
	}
	x.chance = max(x.chance, min(1, stats.BinomialTail(k, n, rate)*float64(len(t.ranks)*t.looks)*tries))
}
