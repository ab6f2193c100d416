// SPDX-License-Identifier: Apache-2.0

package rankevents

import "github.com/lockstep-otel/lockstep/internal/model"

// hostScope says in which scope the host is: the main thread, whose id is the
// process's, else the thread that has been in one longest. Of several threads that
// work, the first is the program's own, the others are mostly its loaders.
func (r *Rank) hostScope() (scope, phase string, forSeconds model.Optional[float64]) {
	r.scopes = r.src.OpenScopes(r.scopes[:0])
	best := -1
	for i := range r.scopes {
		s := &r.scopes[i]
		if s.TID == r.header.PID {
			best = i
			break
		}
		if best < 0 || s.Since < r.scopes[best].Since {
			best = i
		}
	}
	if best < 0 {
		return "", "", forSeconds
	}
	s := &r.scopes[best]
	return firstOf(r.src.String(s.Name), "scope"), phaseName(s.Phase), model.Some(seconds(r.now - min(s.Since, r.now)))
}
