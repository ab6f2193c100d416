// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// maxFingerprints bounds those of one rank that are handed on at once: a program takes some a minute.
const maxFingerprints = 256

// fingerprint takes what a slice of the process's parameters hashes to.
func (r *Rank) fingerprint(rec *ring.Record) {
	v := rec.Fingerprint()
	switch {
	case r.silent:
		return
	case v.Step < 0 || v.Group == "" || v.Total > math.MaxInt64 || v.Start > v.Total:
		r.stats.FingerprintsInvalid++
		return
	case v.At > r.now+future:
		r.stats.BadTimes++
		return
	case len(r.batch.Fingerprints) >= maxFingerprints:
		r.flush()
	}
	r.batch.Fingerprints = append(r.batch.Fingerprints, model.Fingerprint{
		Rank: r.Identity(), Time: r.unix(v.At), Life: r.lifeOf(), Step: v.Step, Hash: v.Hash,
		Start: int64(v.Start), Total: int64(v.Total), Group: v.Group, Replicas: int64(v.Replicas),
	})
}
