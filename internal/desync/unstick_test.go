// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// An operation that all are in and nobody gets out of is the one cause, though some enqueued more behind it.
func TestStalledOperation_SomeRanAhead_IsOneRoot(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one ran ahead":            {"group W 0-3\nrank 0-1: W ar 59 done; W ar 60\nrank 2: W ar 59 done; W ar 60; W ar 61\nrank 3: W ar 59 done; W ar 60", "stalled_op: all_reduce 60 of W; 0-3 wait"},
		"most ran ahead":           {"group W 0-3\nrank 0-2: W ar 59 done; W ar 60; W ar 61\nrank 3: W ar 59 done; W ar 60", "stalled_op: all_reduce 60 of W; 0-3 wait"},
		"on another communicator":  {"group W 0-3\ngroup F 0-3\nrank 0-1: W ar 20 done; F ag 39; W ar 21\nrank 2-3: W ar 20 done; F ag 39", "stalled_op: all_gather 39 of F; 0-3 wait"},
		"by several, in one stair": {"group W 0-3\nrank 0: W ar 59 done; W ar 60\nrank 1: W ar 60; W ar 61\nrank 2: W ar 60; W ar 61; W ar 62\nrank 3: W ar 60", "stalled_op: all_reduce 60 of W; 0-3 wait"},
		"of Gloo":                  {"world 4\ngroup W 0-3 gloo\nrank 0-1: W ar 59 done; W ar 60\nrank 2: W ar 59 done; W ar 60; W ar 61\nrank 3: W ar 59 done; W ar 60", "stalled_op: all_reduce 60 of W; 0-3 wait"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, c.text)
			assert.Equal(t, []string{c.want}, said(rep))
			assert.Equal(t, desync.Hang, rep.Verdict)
			assert.Equal(t, 4, rep.Victims)
		})
	}
}
