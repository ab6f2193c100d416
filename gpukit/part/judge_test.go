// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

func TestBroken_TimeOfThePart_NotShown(t *testing.T) {
	for _, c := range []struct {
		err  error
		want report.Status
		text string
	}{
		{fmt.Errorf("run work.py: %w after 3 s", kit.ErrNoTime), report.NotShown, "not run: the time that was left ran out"},
		{fmt.Errorf("run work.py: %w, after 3 s", kit.ErrLimit), report.Failed, "run work.py: got no end within its time limit, after 3 s"},
	} {
		p := report.NewPart("any", "", 0)
		broken(p, "check", c.err)
		require.Len(t, p.Checks, 1)
		assert.Equal(t, c.want, p.Checks[0].Status)
		assert.Equal(t, c.text, p.Checks[0].Text)
	}
}

// TestParts_TimeIsOver_NothingFailed runs parts with programs that would run for minutes.
func TestParts_TimeIsOver_NothingFailed(t *testing.T) {
	for _, a := range []Part{demoPart(), nodePart(), ncclPart(), hangsPart(), ranksPart()} {
		t.Run(a.Name, func(t *testing.T) {
			k := ranksKit(t, "sleep 600", "sleep 600")
			for _, path := range []string{k.Plugin(), k.StandIn("lockstep-demo-worker"), k.StandIn("lockstep-demo-cupti.so")} {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			a.Limit = 100 * time.Millisecond
			p := a.Do(context.Background(), k)
			require.NotEmpty(t, p.Checks)
			for _, c := range p.Checks {
				assert.NotEqual(t, report.Failed, c.Status, "%s: %s", c.Name, c.Text)
			}
		})
	}
}
