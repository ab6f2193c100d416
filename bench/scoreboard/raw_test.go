// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
)

func TestRawRowsHoldConfidenceAndEvidence(t *testing.T) {
	all, err := fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1}).run(methods.All[:1])
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, encodeRaw(&b, all))
	var records []map[string]any
	for lines := bufio.NewScanner(&b); lines.Scan(); {
		var m map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		records = append(records, m)
	}
	require.Len(t, records, 2)
	assert.Equal(t, "job", records[0]["record"])
	assert.Equal(t, "gpu_clock", records[0]["family"])
	f := records[1]
	assert.Equal(t, "finding", f["record"])
	assert.Equal(t, true, f["with_class"])
	assert.Greater(t, f["confidence"], 0.5)
	assert.NotEmpty(t, f["evidence"])
	assert.Equal(t, []any{5.0}, f["ranks"], "who is named, not how many there are")
	assert.EqualValues(t, 8, f["job_ranks"])
}
