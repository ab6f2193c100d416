// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/offsets"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

var spans, logs = key{defaultTraceTopic, 0}, key{defaultLogTopic, 0}

func taken(t *testing.T, cfg *Config, all ...key) *owned {
	t.Helper()
	o := &owned{}
	for _, k := range all {
		o.take(k, commit{offset: -1}, bounds{}, cfg)
	}
	return o
}

func stepOf(n int64) offsets.Step {
	return offsets.Step{Job: offsets.Job{ID: "j", Incarnation: "inc"}, Step: n}
}

// The last records have no step, and their time passes.
func TestPartition_Idle_OffsetMoves(t *testing.T) {
	t.Parallel()
	p, now := taken(t, newDefaultConfig(), logs).get(logs), time.Now()
	for i := range int64(50) {
		p.used(&record{offset: i, others: true}, now)
		now = now.Add(2 * time.Second)
	}
	first, _, _, changed := p.floor("me", now)
	assert.True(t, changed)
	for range 130 {
		now = now.Add(time.Second)
		p.floor("me", now)
	}
	last, _, _, changed := p.floor("me", now)
	assert.Less(t, first, last)
	assert.EqualValues(t, 50, last)
	assert.False(t, changed, "it was marked before")
}

func TestPartition_OffsetMovesAndTextStays_IsAChange(t *testing.T) {
	t.Parallel()
	p, now := taken(t, newDefaultConfig(), logs).get(logs), time.Now()
	p.used(&record{offset: 0, others: true}, now)
	_, _, _, changed := p.floor("me", now)
	assert.True(t, changed)
	for range int(defaultHoldTime/time.Second) - 1 {
		now = now.Add(time.Second)
		_, _, _, changed = p.floor("me", now)
		assert.False(t, changed)
	}
	at, _, _, changed := p.floor("me", now.Add(time.Second))
	assert.EqualValues(t, 1, at)
	assert.True(t, changed)
	p.begin(now)
	_, _, _, changed = p.floor("me", now)
	assert.True(t, changed, "another generation has not marked it")
}

// The brokers are away for longer than anything is held. What analyses have open is held when they are back.
func TestPartition_LongOutage_HoldsWhatIsOpen(t *testing.T) {
	t.Parallel()
	cfg := newDefaultConfig()
	o, now := taken(t, cfg, spans), time.Now()
	p := o.get(spans)
	for i := range int64(50) {
		p.used(&record{offset: i, steps: []offsets.Step{stepOf(i)}}, now)
	}
	now = now.Add(2 * cfg.Hold.Idle)
	p.begin(now)
	at, _, _, _ := p.floor("me", now)
	assert.Zero(t, at)
}

// Another collector had the spans of a job and none of its log records. The job is dropped here, and read again from
// both topics.
func TestOwned_SpansWereElsewhere_JobIsForgottenAndReadAgain(t *testing.T) {
	t.Parallel()
	o := taken(t, newDefaultConfig(), spans, logs)
	o.get(spans).used(&record{offset: 0, steps: []offsets.Step{stepOf(1)}}, time.Now())
	o.get(logs).used(&record{offset: 0, others: true, jobs: []string{"j"}}, time.Now())
	theirs := commit{10, "b", offsets.Marks{By: "b", Next: 20}}
	lost := o.drop(func(p *partition) bool {
		return p.passedOn(map[key]commit{spans: theirs, logs: {offset: -1}}, "a")
	})
	assert.Len(t, lost, 2)
	assert.Equal(t, []string{"j"}, o.jobsOnlyOf(lost, defaultTraceTopic))
}

// Partitions of the topics do not match: log records of a job are in another partition than its spans.
func TestOwned_JobsOnlyOf_SpansDecide(t *testing.T) {
	t.Parallel()
	other := key{defaultLogTopic, 3}
	with := func(lost, kept key) []string {
		o := taken(t, newDefaultConfig(), lost, kept)
		for _, k := range []key{lost, kept} {
			o.get(k).used(&record{jobs: []string{"j"}}, time.Now())
		}
		return o.jobsOnlyOf(o.drop(func(p *partition) bool { return p.key == lost }), defaultTraceTopic)
	}
	assert.Equal(t, []string{"j"}, with(spans, other))
	assert.Empty(t, with(other, spans), "its open steps are here")
	assert.Empty(t, with(other, key{defaultLogTopic, 4}))
}

// Analyses take all jobs without an id for one, whose id is empty.
func TestPartition_JobWithoutID_IsKnown(t *testing.T) {
	t.Parallel()
	p := taken(t, newDefaultConfig(), spans).get(spans)
	td := otelmap.OpsToTraces(&model.Rank{JobName: "train", Rank: 0}, []model.Op{{Kind: model.KindStep, Name: "step", Step: model.Some(int64(1)), Start: 1, End: 2}})
	r := record{}
	require.NoError(t, (&traceData{nil, p}).read(marshal(t, td), ptrace.NewTraces(), &r))
	p.used(&r, time.Now())
	assert.Equal(t, []string{""}, p.jobs())
}

type claimTo struct {
	sarama.ConsumerGroupClaim
	end int64
}

func (c claimTo) HighWaterMarkOffset() int64 { return c.end }

// A group that begins at the end of a topic has read all of it.
func TestPartition_Lag_CountsFromWhereReadingBegins(t *testing.T) {
	t.Parallel()
	for initial, want := range map[string]int64{latest: 5, earliest: 905} {
		cfg := newDefaultConfig()
		cfg.InitialOffset = initial
		o := &owned{}
		o.take(spans, commit{offset: -1}, bounds{100, 1000}, cfg)
		p := o.get(spans)
		assert.Zero(t, p.lag(), "nothing is read yet")
		p.reads(claimTo{end: 1005})
		assert.Equal(t, want, p.lag(), initial)
		assert.Zero(t, p.gap(500), "the group begins to read")
	}
}
