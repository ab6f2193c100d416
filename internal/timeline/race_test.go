// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A reading of a host's clocks asks what was compared while edges are added.
func TestKnows_WhileEdgesAreAdded_IsGuarded(t *testing.T) {
	tl := New(Options{})
	d := &doubt{first: &reading{raw: raw(0)}, rawFrom: -1}
	var adds sync.WaitGroup
	adds.Go(func() {
		for i := range int64(1000) {
			e := model.ClockEdge{Src: raw(0), Dst: raw(1), At: i, Upper: 1}
			tl.solving.Lock()
			tl.compare(&e)
			tl.unpair(time.Now())
			tl.solving.Unlock()
		}
	})
	for range 1000 {
		tl.mu.Lock()
		tl.knows(realtime(0), d)
		tl.mu.Unlock()
	}
	adds.Wait()
	assert.True(t, tl.knows(realtime(0), d))
}

// Readers, writers and solutions at once: of one clock, a reader never sees time go
// back.
func TestConcurrentUse(t *testing.T) {
	w := cluster(t, 40, 4)
	for range 3 {
		w.window()
	}
	read, wall, begin := w.clocks[raw(2)], w.clocks[realtime(2)], w.now
	fixed := time.Unix(0, epoch+w.now) // the world's own clock is not for several
	w.tl.opt.Now = func() time.Time { return fixed }
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			last := int64(0)
			for at := begin; ; at += sec / 1000 {
				select {
				case <-stop:
					return
				default:
				}
				p, ok := w.tl.Place(raw(2), read(at))
				if !ok {
					return // faster than the world: beyond all that is known
				}
				assert.GreaterOrEqual(t, p.Time, last)
				last = p.Time
				w.tl.Between(raw(2), read(at), raw(3), read(at))
				w.tl.Between(realtime(2), wall(at), raw(3), read(at))
				w.tl.Resolve("h2")
			}
		})
	}
	wg.Go(func() { // whoever feeds and watches
		for k := int64(0); ; k++ {
			select {
			case <-stop:
				return
			default:
			}
			at := begin + k*sec/1000
			assert.NoError(t, w.tl.AddEdge(model.ClockEdge{
				Src: raw(2), Dst: "utc:x", At: read(at), Lower: -farthest, Upper: farthest, Source: model.EdgeChrony, Stamps: model.StampUser,
			}))
			prompt := w.pairOver([2]string{raw(2), realtime(2)}, at, at+sec)
			prompt.Prompt = true
			assert.NoError(t, w.tl.AddEdge(prompt))
			w.tl.Alias("node", "h2")
			assert.Positive(t, w.tl.Counters().Clocks)
		}
	})
	feed := w.tl.Feed()
	for range 20 {
		w.window()
		w.tl.State()
		assert.NotEmpty(t, feed.Take().Models)
		assert.NoError(t, New(w.tl.opt).Restore(snapshotOf(w.tl)))
	}
	close(stop)
	wg.Wait()
	feed.Close()
}
