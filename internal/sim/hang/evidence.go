// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// Evidence is what of a job's dumps there is to see.
type Evidence struct {
	Missing    float64 // share of the ranks whose dump is lost, whoever they are
	Buffer     int     // entries; 0: PyTorch's 2,000
	OnlyActive bool
	Torn       float64 // share of the dumps that are cut somewhere
	Skew       time.Duration
	Version    string
	JSON       bool
	Stacks     bool
	// Joined: what the process itself records is there, too: roots, and what a host is in.
	Joined bool
}

// Evidences by name.
var Evidences = map[string]Evidence{
	"whole":       {Skew: 3 * time.Second, Version: "2.10"},
	"wrapped":     {Skew: 3 * time.Second, Version: "2.9", Buffer: 48},
	"only_active": {Skew: 3 * time.Second, Version: "2.9", OnlyActive: true},
	"torn":        {Skew: 3 * time.Second, Version: "2.10", Torn: 0.25, Stacks: true},
	"joined":      {Skew: 3 * time.Second, Version: "2.10", Joined: true},
	"json":        {Skew: 3 * time.Second, Version: "2.4", JSON: true},
}

// Dump is a rank's file.
type Dump struct {
	Rank int64
	Data []byte
	At   int64 // when it was written, Unix ns
	Torn bool
}

// Absence is a rank without a file.
type Absence struct {
	Rank   int64
	Reason string // as model.AbsenceReason
}

// defaultBuffer is PyTorch's.
const defaultBuffer = 2000

// Collect takes the dumps of a job. Those of a hang are written after the timeout, those of
// a healthy job somewhere in the middle of its run.
func (j *Job) Collect(e Evidence, seed uint64) (dumps []Dump, absent []Absence) {
	rng := rand.New(rand.NewPCG(seed, 0x64756d7073)) //nolint:gosec // repeatable on purpose
	lost := j.lose(e.Missing, rng)
	base := j.last + int64(10*time.Minute)
	if j.truth.Family == Healthy {
		base = start + int64(float64(j.last-start)*(0.3+0.6*rng.Float64()))
	}
	for r := range j.ranks {
		at := base
		if e.Skew > 0 {
			at += rng.Int64N(int64(e.Skew))
		}
		// Hosts' clocks differ by some milliseconds.
		clock := rng.Int64N(20_000_000) - 10_000_000
		cut := rng.Float64()
		torn := rng.Float64() < e.Torn
		switch id := int64(r); {
		case slices.Contains(j.truth.Dead, id):
			absent = append(absent, Absence{id, "dead"})
		case slices.Contains(j.truth.Silent, id) || lost[r]:
			absent = append(absent, Absence{id, "missing"})
		default:
			data := j.file(r, e, at, clock)
			if torn {
				data = frwrite.Torn(data, cut)
			}
			dumps = append(dumps, Dump{id, data, at + clock, torn})
		}
	}
	return dumps, absent
}

// lose returns whose dumps are lost: the share of all ranks, rounded by chance.
func (j *Job) lose(share float64, rng *rand.Rand) map[int]bool {
	n := share * float64(j.world)
	whole := int(math.Floor(n))
	if rng.Float64() < n-float64(whole) {
		whole++
	}
	lost := map[int]bool{}
	for _, r := range rng.Perm(j.world)[:whole] {
		lost[r] = true
	}
	return lost
}

func (j *Job) file(r int, e Evidence, at, clock int64) []byte {
	v := View{At: at, Clock: clock, Buffer: e.Buffer, Version: e.Version, Stacks: e.Stacks, Timeout: 10 * time.Minute}
	if v.Buffer == 0 {
		v.Buffer = defaultBuffer
	}
	d := j.Dump(r, v)
	if len(d.Entries) > v.Buffer {
		d.Entries = d.Entries[len(d.Entries)-v.Buffer:]
	}
	if e.OnlyActive {
		d = d.Active()
	}
	if e.JSON {
		return frwrite.JSON(d)
	}
	return frwrite.Pickle(d)
}

// FileName returns the name that PyTorch gives a rank's file.
func FileName(rank int64) string { return fmt.Sprintf("nccl_trace_rank_%d", rank) }
