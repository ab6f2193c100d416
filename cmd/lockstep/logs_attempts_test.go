// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attempts are torchrun's folders: in that of attempt 0 operations timed out.
func attempts(t *testing.T, last func(rank int) string) string {
	t.Helper()
	dir := t.TempDir()
	for r := range 4 {
		for n, text := range []string{timedOut(r), last(r)} {
			folder := filepath.Join(dir, "none_abc", fmt.Sprintf("attempt_%d", n), fmt.Sprint(r))
			require.NoError(t, os.MkdirAll(folder, 0o700))
			name := "stderr.log"
			if n == 1 && text == "" || n == 1 && text[0] == 's' {
				name = "stdout.log"
				putFile(t, "", folder, "stderr.log")
			}
			putFile(t, text, folder, name)
		}
	}
	return dir
}

// The time-outs of an earlier attempt are no hang of the last one, also where that has none.
func TestAnalyzeLogs_LastAttemptWithoutTimeOuts_IsJudged(t *testing.T) {
	for name, last := range map[string]string{"steps": "step 1\n", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			status, text := said(t, attempts(t, func(int) string { return last }))
			assert.Equal(t, exitUnusable, status)
			assert.Contains(t, text, "Cannot tell: the time-outs are of an earlier attempt of the job; attempt 1 has none:")
			assert.Contains(t, text, "none_abc/attempt_0 timed out and was left out: attempt 1 is the last one.")
			assert.NotContains(t, text, "not_scheduled")
		})
	}
}

// Where both attempts timed out, the last one is judged.
func TestAnalyzeLogs_BothAttemptsTimedOut_SayWhatWasLeftOut(t *testing.T) {
	status, text := said(t, attempts(t, timedOut))
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, text, "none_abc/attempt_0 timed out and was left out: attempt 1 is the last one.")
}
