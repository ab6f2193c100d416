// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// wrote has a node tell of its part of a save, of which the oldest file is so old.
func (r *rig) wrote(n int, save int64, age time.Duration, s model.DomainState) {
	r.revision++
	for _, kind := range []model.DomainKind{model.DomainModel, model.DomainPlace} {
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: save, Domain: model.Domain{Kind: kind, ID: string(rune('a' + n))},
			State: s, Observer: string(rune('a' + n)), Revision: r.revision,
		}
		if s == model.DomainCommitted {
			o.Epoch = model.Some(save)
		}
		if kind == model.DomainPlace {
			o.Of, o.Parts = 2, 1
			if age != 0 {
				o.FirstWrite = r.now.Add(-age).UnixNano()
			}
		}
		r.hear(o)
	}
}

// watched is a rig of which two nodes are heard.
func watched(t *testing.T, age time.Duration) *rig {
	t.Helper()
	r := newRig(nil)
	for n := range 2 {
		r.wrote(n, 100, age, model.DomainCommitted)
	}
	r.pass(10 * time.Minute)
	assert.Empty(t, r.Spans(), "they were there before")
	assert.EqualValues(t, 1, r.Stats().SpansLost)
	return r
}

func TestASaveIsASpan(t *testing.T) {
	r := watched(t, time.Hour)
	begun := r.now
	r.pass(2 * time.Minute)
	r.wrote(1, 200, time.Minute, model.DomainTentative)
	r.wrote(0, 200, 2*time.Minute, model.DomainCommitted)
	r.pass(3 * time.Minute)
	assert.Empty(t, r.Spans())
	r.wrote(1, 200, 4*time.Minute, model.DomainCommitted)
	r.pass(time.Minute)
	assert.Equal(t, []Span{{
		Job: "job", Generation: "g", Save: 200, Start: begun, End: begun.Add(6 * time.Minute), FromFiles: true,
		Domains: 4, Last: model.Domain{Kind: model.DomainModel, ID: "b"},
		Confirmed: []model.Confirmation{{Domain: model.Domain{Kind: model.DomainModel, ID: "b"}, Time: begun.Add(5 * time.Minute).UnixNano()}},
	}}, r.Spans())
	r.wrote(1, 200, 5*time.Minute, model.DomainTentative)
	r.pass(time.Minute)
	r.wrote(1, 200, 5*time.Minute, model.DomainCommitted)
	r.pass(10 * time.Minute)
	assert.Empty(t, r.Spans(), "once")
	assert.EqualValues(t, 1, r.Stats().SpansLost)
}

// Without times of files it begins when it was heard of, unless it was whole then.
func TestASaveWithoutTimesOfFiles(t *testing.T) {
	for name, age := range map[string]time.Duration{"no times": 0, "a clock that is ahead": -time.Hour, "copied with its times": 25 * time.Hour} {
		r := watched(t, 30*time.Hour)
		r.pass(26 * time.Hour)
		tell := func(n int, s model.DomainState) { r.wrote(n, 200, age, s) }
		heard := r.now
		tell(0, model.DomainCommitted)
		tell(1, model.DomainTentative)
		r.pass(3 * time.Minute)
		tell(1, model.DomainCommitted)
		r.pass(time.Minute)
		spans := r.Spans()
		require.Len(t, spans, 1, name)
		assert.Equal(t, []any{heard, heard.Add(4 * time.Minute), false}, []any{spans[0].Start, spans[0].End, spans[0].FromFiles}, name)
	}
	r := watched(t, 0)
	for n := range 2 {
		r.wrote(n, 200, 0, model.DomainCommitted)
	}
	r.pass(time.Minute)
	assert.Empty(t, r.Spans(), "whole at once")
}

// Of a save that was begun while one who looks was silent nobody knows when it became whole.
func TestASaveThatWasMissed(t *testing.T) {
	r := watched(t, time.Hour)
	r.fall("b")
	r.pass(30 * time.Minute)
	r.wrote(0, 200, time.Minute, model.DomainCommitted)
	r.pass(10 * time.Minute)
	r.wrote(1, 200, 10*time.Minute, model.DomainCommitted)
	r.pass(time.Minute)
	assert.Empty(t, r.Spans())
}

func TestSpansAreBounded(t *testing.T) {
	r := watched(t, time.Hour)
	for save := range int64(maxSpans + 8) {
		for n := range 2 {
			r.wrote(n, 200+save, time.Second, model.DomainCommitted)
		}
		r.Tick(r.now)
	}
	assert.Len(t, r.Spans(), maxSpans)
	assert.EqualValues(t, 1+8, r.Stats().SpansLost)
}
