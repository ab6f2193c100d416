// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// restart is a watch that takes the place of the one before, so long after it ended.
func (r *rig) restart(t *testing.T, away time.Duration) {
	t.Helper()
	data, err := r.Snapshot()
	require.NoError(t, err)
	r.now = r.now.Add(away)
	r.Watch = New(r.cfg)
	require.NoError(t, r.Restore(data, r.now))
	again, err := r.Snapshot()
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(again))
}

// reborn has all observers begin a new life, and see only some saves.
func (r *rig) reborn(saves ...int64) {
	r.revision = 1
	for k, o := range r.said {
		delete(r.said, k)
		for _, save := range saves {
			if o.Save == save {
				o.Life, o.Revision = r.now.UnixNano(), 1
				r.said[k] = o
			}
		}
	}
}

// look has each rank's observer tell of a save as it looks at its files.
func (r *rig) look(save int64, holds ...int64) {
	r.tell(save, holds...)
	for rank := range holds {
		name := fmt.Sprint("node", rank)
		o := r.said[fmt.Sprint(name, "g", save, model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)})]
		o.Domain = model.Domain{Kind: model.DomainPlace, ID: name}
		r.hear(o)
	}
}

const beat = 5 * time.Minute

func TestRestartOfAHealthyJob(t *testing.T) {
	r := newRig(nil)
	for save := int64(10); save <= 40; save += 10 {
		r.look(save, save, 0)
		r.pass(3 * time.Minute)
		r.restart(t, time.Minute)
		r.look(save, save, save)
		assert.Empty(t, r.pass(30*time.Minute))
		r.look(save-10, -1, -1) // retention
		r.restart(t, time.Minute)
		assert.Empty(t, r.pass(30*time.Minute))
	}
}

func TestTheNewestIsLostWhileNobodyLooks(t *testing.T) {
	for name, lose := range map[string]func(*rig){
		"who looks at the files has seen it":   func(r *rig) { r.look(20, -1, -1) },
		"who looks at the files was away, too": func(r *rig) { r.reborn(10) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.look(10, 10, 10)
			r.look(20, 20, 20)
			require.Empty(t, r.pass(30*time.Minute))
			r.restart(t, time.Hour)
			lose(r)
			assert.Equal(t, []string{"20 revoked 1"}, r.pass(time.Hour))
			require.Len(t, r.Standing(r.now), 1)
			assert.Equal(t, []any{"job", int64(20), model.ClassRevoked}, []any{r.Standing(r.now)[0].JobID, saveOf(&r.Standing(r.now)[0]), r.Standing(r.now)[0].Class})

			r.restart(t, time.Hour)
			assert.Empty(t, r.pass(time.Hour), "it stands")
			require.Len(t, r.Standing(r.now), 1)
			r.look(30, 30, 30)
			assert.Equal(t, []string{"20 revoked 2 ended"}, r.pass(time.Hour), "there is a newer one")
		})
	}
	t.Run("it comes again", func(t *testing.T) {
		r := newRig(nil)
		r.look(10, 10, 10)
		r.look(20, 20, 20)
		r.pass(30 * time.Minute)
		r.restart(t, time.Hour)
		r.reborn(10)
		assert.Equal(t, []string{"20 revoked 1"}, r.pass(time.Hour))
		r.look(20, 20, 20)
		assert.Equal(t, []string{"20 revoked 2 ended"}, r.pass(time.Hour))
	})
}

func TestWhatIsNoLoss(t *testing.T) {
	begin := func() *rig {
		r := newRig(nil)
		r.look(10, 10, 10)
		r.look(20, 20, 20)
		r.pass(30 * time.Minute)
		return r
	}
	t.Run("who tells of it knows what it was told since it began", func(t *testing.T) {
		r := newRig(nil)
		r.tell(10, 10, 10)
		r.tell(20, 20, 20)
		r.pass(30 * time.Minute)
		r.restart(t, time.Hour)
		r.reborn(10)
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("more frontiers than there is room for", func(t *testing.T) {
		r := newRig(func(c *Config) { c.Engine.Jobs, c.Engine.Generations = 1, 2 })
		for i := range 3 {
			for _, generation := range []string{"a", "b"} {
				r.hear(model.EpochObservation{
					JobID: fmt.Sprint("job ", i), Generation: generation, Save: 10, Domain: model.Domain{Kind: model.DomainModel, ID: "rank 0"},
					State: model.DomainCommitted, Epoch: model.Some(int64(10)), Observer: "node", Revision: 1,
				})
			}
			r.pass(time.Minute)
			r.said = map[string]model.EpochObservation{}
			r.restart(t, time.Minute)
		}
		assert.Len(t, r.frontiers, 2)
	})
	t.Run("nothing was kept", func(t *testing.T) {
		r := begin()
		r.Watch = New(r.cfg)
		r.reborn(10)
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("a newer one, and retention", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn()
		r.look(30, 30, 30)
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("another number of ranks goes on", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn(10)
		for i := range 4 {
			r.hear(model.EpochObservation{
				JobID: "job", Generation: "h", Save: 30, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", i)},
				State: model.DomainCommitted, Epoch: model.Some[int64](30), Observer: fmt.Sprint("node", i), Life: r.now.UnixNano(), Revision: 1,
			})
		}
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("nobody looks any more", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn()
		assert.Empty(t, r.pass(4*r.cfg.Silent))
		assert.Empty(t, r.frontiers)
		assert.Empty(t, r.before)
	})
	t.Run("who looked at it looks at other jobs", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn(10)
		for k, o := range r.said {
			o.JobID = "other"
			r.said[k] = o
		}
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("who looks never looked at it", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn(10)
		for k, o := range r.said {
			o.Observer += " of another folder"
			r.said[k] = o
		}
		assert.Empty(t, r.pass(2*time.Hour))
	})
	t.Run("who looks can not see all", func(t *testing.T) {
		r := begin()
		r.restart(t, time.Hour)
		r.reborn(10)
		for k, o := range r.said {
			o.Blind = true
			r.said[k] = o
		}
		assert.Empty(t, r.pass(2*time.Hour))
	})
}

func TestWhatIsOpenGoesOn(t *testing.T) {
	begin := func(t *testing.T) *rig {
		t.Helper()
		r := newRig(nil)
		r.look(10, 10, 0)
		require.Equal(t, []string{"10 partial 1"}, r.pass(20*time.Minute))
		r.restart(t, time.Minute)
		require.Len(t, r.Standing(r.now), 1, "it is told, too")
		require.Equal(t, time.Unix(1_760_000_000, 0).UnixNano(), r.Standing(r.now)[0].Start)
		return r
	}
	t.Run("as it was", func(t *testing.T) {
		r := begin(t)
		assert.Empty(t, r.pass(time.Hour))
		r.look(10, 10, 10)
		assert.Equal(t, []string{"10 partial 2 ended"}, r.pass(time.Hour))
	})
	t.Run("mended meanwhile", func(t *testing.T) {
		r := begin(t)
		r.look(10, 10, 10)
		assert.Equal(t, []string{"10 partial 2 ended"}, r.pass(beat), "at once")
	})
	t.Run("worse meanwhile", func(t *testing.T) {
		r := begin(t)
		r.look(10, 10, 7)
		assert.Equal(t, []string{"10 mixed 2"}, r.pass(time.Hour))
	})
	t.Run("nobody tells of it", func(t *testing.T) {
		r := begin(t)
		r.reborn()
		assert.Empty(t, r.pass(2*r.cfg.Silent-time.Minute))
		assert.Equal(t, []string{"10 partial 2 ended"}, r.pass(2*time.Minute))
	})
}

func TestSnapshotsThatAreNotRight(t *testing.T) {
	for text, want := range map[string]string{
		``:               "restore saves: unexpected end of JSON input",
		`{"version": 3}`: "restore saves: check version: got 3; want 1 or 2",
		`{"version": 2}`: "restore saves: read findings: ",
		`{"version": 1, "frontiers": [{"job": "j", "save": 5}, {"save": 7}]}`:                              "check frontiers: 1: got job \"\" and 0 observers; want a job",
		`{"version": 2, "frontiers": [{"job": "j", "save": 5}], "findings": {"version": 1, "open": [{}]}}`: "check open finding 0",
	} {
		w := New(NewDefaultConfig())
		require.ErrorContains(t, w.Restore([]byte(text), time.Unix(1, 0)), want)
		assert.Empty(t, w.frontiers)
		assert.Zero(t, w.book.Len())
	}
	w := New(NewDefaultConfig())
	text := fmt.Sprintf(`{"version": 1, "frontiers": [%s{"job": "j"}]}`, strings.Repeat(`{"job": "j"},`, w.cfg.Engine.Jobs*w.cfg.Engine.Generations))
	require.ErrorContains(t, w.Restore([]byte(text), time.Unix(1, 0)), "check frontiers: got 2049; want at most 2048")
}

func FuzzRestore(f *testing.F) {
	r := newRig(nil)
	r.look(10, 10, 10)
	r.look(20, 20, 7)
	r.pass(time.Hour)
	data, err := r.Snapshot()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(nil)
		if r.Restore(data, r.now) != nil {
			return
		}
		first, err := r.Snapshot()
		require.NoError(t, err)
		r.look(10, 10, 10)
		r.pass(time.Hour)
		r.Standing(r.now)
		_, err = r.Snapshot()
		require.NoError(t, err)
		again := newRig(nil)
		require.NoError(t, again.Restore(first, again.now))
		second, err := again.Snapshot()
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, second), "%s\n%s", first, second)
	})
}

// BenchmarkSnapshot is of a job of 16,384 ranks with 8 domains each.
func BenchmarkSnapshot(b *testing.B) {
	w := New(NewDefaultConfig())
	now := time.Unix(1_760_000_000, 0)
	for rank := range 16_384 {
		for domain := range 8 {
			w.Observe(&model.EpochObservation{
				JobID: "job", Generation: "g", Save: 10, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint(rank, domain)},
				State: model.DomainCommitted, Epoch: model.Some[int64](10), Observer: fmt.Sprint("node", rank/8), Revision: 1,
			}, now)
		}
	}
	w.Tick(now)
	size := 0
	for b.Loop() {
		data, err := w.Snapshot()
		require.NoError(b, err)
		size = len(data)
	}
	b.ReportMetric(float64(size), "bytes")
}
