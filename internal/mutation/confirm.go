// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"maps"
	"regexp"
	"slices"
)

// rounds bounds how often tests that fail by chance run again.
const rounds = 3

// rules counts the changes of what a verdict means: one of other rules is not used again.
const rules = 2

// confirmed runs the suite until its outcome is sure: a test kills a mutant where it fails
// or takes too long twice, the second time alone or after all others. A test that does so
// once did it by chance, such as on a busy machine, and is added to the record.
func (t *trial) confirmed(ctx context.Context, s *suite, binary string, tier Tier) (run, error) {
	failures := map[string]int{} // by test, of those that did not kill
	defer func() { t.record.Chance = append(t.record.Chance, slices.Sorted(maps.Keys(failures))...) }()
	for range rounds {
		r, err := s.run(ctx, binary, t.dir, tier, s.limits[tier], "")
		if err != nil || !r.outcome.dead() {
			return r, err
		}
		failures[r.test]++
		kills := failures[r.test] > 1
		if !kills && r.test != "" {
			again, err := s.run(ctx, binary, t.dir, tier, s.limits[tier], r.test)
			if err != nil {
				return run{}, err
			}
			kills = again.outcome.dead()
		}
		if kills {
			delete(failures, r.test)
			return r, nil
		}
	}
	return run{outcome: Alive}, nil
}

// diagnostic is what the compiler writes about sources that it rejects: a compiler that was
// killed, or had no space, writes none.
var diagnostic = regexp.MustCompile(`(?m)^\S+\.go:\d+(:\d+)?: `)
