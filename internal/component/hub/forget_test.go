// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/component/jobs"
)

// extensions are those of a host.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

type jobsExtension struct {
	component.StartFunc
	component.ShutdownFunc
	jobs.Registry
}

var jobsID = component.MustNewID("jobs")

// sharing is a rig whose engine forgets jobs that an extension names, and notes that with its other calls.
func sharing(t *testing.T) (*rig, *jobsExtension) {
	t.Helper()
	r, e := newRig(t), &jobsExtension{}
	r.host, r.Jobs = extensions{jobsID: e}, &jobsID
	r.Forget = func(ids []string) { r.note("forget %v", ids) }
	r.Suspend = func(suspended bool) { r.note("suspend %v", suspended) }
	return r, e
}

// A job is forgotten after what came of it before, also where that waits for a busy engine.
func TestForget_BatchesWait_ComesAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := sharing(t)
		r.takes.Store(int64(3 * time.Second))
		r.start()
		first := make(chan error)
		go func() { first <- r.send(t.Context(), "1") }()
		synctest.Wait()
		require.NoError(t, r.send(t.Context(), "2"))
		e.Release(t.Context(), []string{"a"})
		assert.Equal(t, []string{"1", "2", "forget [a]"}, r.noted())
		require.NoError(t, <-first)
		e.Suspend(t.Context())
		e.Resume(t.Context())
		assert.Equal(t, []string{"suspend true", "suspend false"}, r.noted())
		r.stop()
		e.Release(t.Context(), []string{"b"})
		assert.Empty(t, r.noted(), "it has left")
	})
}

// An inbox without room holds up the release, which is not lost.
func TestForget_InboxFull_WaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := sharing(t)
		r.size, r.InboxBytes = 1000, 1000
		r.takes.Store(int64(10 * time.Second))
		r.start()
		for _, name := range []string{"1", "2"} {
			go func() { _ = r.send(t.Context(), name) }()
			synctest.Wait()
		}
		e.Release(t.Context(), []string{"a"})
		assert.Equal(t, []string{"1", "2", "forget [a]"}, r.noted())
		r.stop()
	})
}

func TestForget_ExtensionMissing_DoesNotStart(t *testing.T) {
	r, _ := sharing(t)
	r.host = extensions{}
	assert.EqualError(t, r.logsToLogs(r.logs).Start(t.Context(), r.host), "find extension jobs: got none; want it in service::extensions")
	r.stop()
}
