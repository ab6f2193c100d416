// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

func testKit(t *testing.T) *kit.Kit {
	t.Helper()
	return kit.New(t.TempDir(), t.TempDir(), t.TempDir())
}

func TestDo_KeepsWhatWasAddedBeforeTheLimit(t *testing.T) {
	a := Part{Name: "slow", Limit: 20 * time.Millisecond, Run: func(ctx context.Context, _ *kit.Kit, p *report.Part) {
		p.Add("first", report.Shown, "")
		<-ctx.Done()
		p.Add("second", report.Failed, ctx.Err().Error())
	}}
	p := a.Do(t.Context(), testKit(t))
	require.Len(t, p.Checks, 2)
	assert.Equal(t, report.Shown, p.Checks[0].Status)
	assert.Contains(t, p.Checks[1].Text, "deadline")
}

func TestDo_APanicIsOnePartsOwn(t *testing.T) {
	a := Part{Name: "broken", Limit: time.Second, Run: func(_ context.Context, _ *kit.Kit, p *report.Part) {
		p.Add("first", report.Shown, "")
		panic("a fault")
	}}
	p := a.Do(t.Context(), testKit(t))
	require.Len(t, p.Checks, 2)
	assert.Equal(t, report.Failed, p.Checks[1].Status)
	assert.Contains(t, p.Checks[1].Text, "a fault")
}

func TestAll_NamesAndLimits(t *testing.T) {
	names := map[string]bool{}
	var sum time.Duration
	for _, a := range All() {
		assert.NotEmpty(t, a.Title)
		assert.False(t, names[a.Name], "%s twice", a.Name)
		names[a.Name] = true
		sum += a.Limit
	}
	assert.NotEmpty(t, names)
	assert.LessOrEqual(t, sum, 15*time.Minute, "parts seldom take all their time, but not for ever")
}
