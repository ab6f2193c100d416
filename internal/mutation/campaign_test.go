// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun_NotCompiled_IsReplacedByTheNext(t *testing.T) {
	packages := crowd(t)
	want, rejected := NewSampler(1, packages).Sample(12)
	broken := map[string]bool{want[0].ID(): true, want[5].ID(): true}
	done := 0
	c := Campaign{
		Sampler: NewSampler(1, packages), Jobs: 2, Done: func(Record) { done++ },
		Judge: func(_ context.Context, m Mutant) (Record, error) {
			if broken[m.ID()] {
				return Record{Mutant: m, Quick: NotCompiled}, nil
			}
			return Record{Mutant: m, Quick: Killed}, nil
		},
	}

	result, err := c.Run(t.Context(), 10)

	require.NoError(t, err)
	var got []string
	for _, r := range result.Records {
		got = append(got, r.ID())
	}
	assert.Equal(t, append(ids(want[1:5]), ids(want[6:])...), got)
	assert.Equal(t, rejected+2, result.Rejected)
	assert.Zero(t, result.Unjudged)
	assert.Equal(t, 12, done)
}

func TestRun_FewerMutantsThanAskedFor_JudgesAll(t *testing.T) {
	packages := crowd(t)
	all, _ := NewSampler(1, packages).Sample(1000)
	c := Campaign{
		Sampler: NewSampler(1, packages), Jobs: 1, Done: func(Record) {},
		Judge: func(_ context.Context, m Mutant) (Record, error) { return Record{Mutant: m, Quick: Killed}, nil },
	}

	result, err := c.Run(t.Context(), 1000)

	require.NoError(t, err)
	assert.Len(t, result.Records, len(all))
	assert.Equal(t, 1000-len(all), result.Unjudged)
}

func TestRun_Deadline_ReturnsWhatWasJudged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	c := Campaign{
		Sampler: NewSampler(1, crowd(t)), Jobs: 2, Done: func(Record) {},
		Judge: func(ctx context.Context, m Mutant) (Record, error) {
			if calls.Add(1) > 5 {
				cancel()
				return Record{}, ctx.Err()
			}
			return Record{Mutant: m, Quick: Killed}, nil
		},
	}

	result, err := c.Run(ctx, 20)

	require.NoError(t, err)
	assert.Len(t, result.Records, 5)
	assert.Equal(t, 15, result.Unjudged)
}

func TestRun_JudgeFails_ReturnsItsError(t *testing.T) {
	full := errors.New("disk full")
	c := Campaign{
		Sampler: NewSampler(1, crowd(t)), Jobs: 2, Done: func(Record) {},
		Judge: func(context.Context, Mutant) (Record, error) { return Record{}, full },
	}

	_, err := c.Run(t.Context(), 20)

	require.ErrorIs(t, err, full)
}
