// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// restart gives the rig a new watch, which knows what the one before kept.
func (r *rig) restart(t *testing.T) {
	t.Helper()
	data, err := r.Snapshot()
	require.NoError(t, err)
	r.Watch = New(r.cfg)
	require.NoError(t, r.Restore(data, r.now))
}

func mixedRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(nil, oldDriver, oldDriver, newDriver)
	r.jobs = []plan{{"job", []int{0, 1, 2}, [][]int64{{0, 1, 2}}}}
	require.Len(t, r.pass(time.Hour), 1)
	return r
}

func TestRestart_StillMixed_StaysOpenUnderItsID(t *testing.T) {
	r := mixedRig(t)
	open := r.Standing(r.now)[0]
	r.restart(t)
	assert.Empty(t, r.pass(time.Hour), "nothing has changed")
	require.Len(t, r.Standing(r.now), 1)
	again := r.Standing(r.now)[0]
	assert.Equal(t, []any{open.ID, open.Revision, open.Start}, []any{again.ID, again.Revision, again.Start})
	r.drivers[2] = oldDriver
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 2×550.90.07, 1×580.126.09; ended"}, r.pass(time.Hour))
}

func TestRestart_EndedMeanwhile_IsClosed(t *testing.T) {
	r := mixedRig(t)
	r.restart(t)
	r.drivers[2] = oldDriver
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 2×550.90.07, 1×580.126.09; ended"}, r.pass(10*time.Minute))
	assert.Empty(t, r.Standing(r.now))
}

func TestRestart_JobIsGone_IsClosedAfterTwiceSilent(t *testing.T) {
	r := mixedRig(t)
	r.restart(t)
	r.jobs = nil
	assert.Empty(t, r.pass(2*r.cfg.Silent-time.Minute))
	assert.Len(t, r.pass(2*time.Minute), 1)
}

// The same versions, at another time, are the same finding of the same life of a job.
func TestFleet_SameData_SameID(t *testing.T) {
	ids := map[string]bool{}
	for _, late := range []time.Duration{0, 17 * time.Minute, 24 * time.Hour} {
		r := newRig(nil, oldDriver, oldDriver, newDriver)
		r.now = r.now.Add(late)
		r.jobs = []plan{{"job", []int{0, 1, 2}, [][]int64{{0, 1, 2}}}}
		r.pass(time.Hour)
		require.Len(t, r.Standing(r.now), 1)
		ids[r.Standing(r.now)[0].ID] = true
	}
	assert.Len(t, ids, 1)
}

// A job that makes room for another may still mix versions.
func TestEvictedJob_IsNotReportedAsClosed(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxJobs = 1 }, oldDriver, newDriver)
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	require.Len(t, r.pass(time.Hour), 1)
	r.jobs = []plan{{"other", []int{0}, [][]int64{{0}}}}
	for _, said := range r.pass(2 * time.Hour) {
		assert.NotContains(t, said, "ended")
	}
	assert.Empty(t, r.Standing(r.now))
}
