// SPDX-License-Identifier: Apache-2.0

package part

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemoVerdict(t *testing.T) {
	for name, c := range map[string]struct{ summary, problem string }{
		"right":        {`{"steps": 17, "latest": [{"class": "compute", "rank": 2}]}`, ""},
		"nothing":      {`{"steps": 17, "latest": []}`, "got [] in 17 steps"},
		"other rank":   {`{"latest": [{"class": "compute", "rank": 1}]}`, "got [rank 1, class compute]"},
		"other class":  {`{"latest": [{"class": "host", "rank": 2}]}`, "got [rank 2, class host]"},
		"no rank":      {`{"latest": [{"class": "compute"}]}`, "got [rank -1, class compute]"},
		"one too many": {`{"latest": [{"class": "compute", "rank": 2}, {"class": "host", "rank": 0}]}`, "got [rank 0, class host rank 2, class compute]"},
		"no JSON":      {`killed`, "read what the demo found"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := demoVerdict([]byte(c.summary), "compute")
			if c.problem != "" {
				assert.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, text, "rank 2, class compute within 17 steps")
		})
	}
}
