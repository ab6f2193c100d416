// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realCupti are NVIDIA's libraries in bin/cupti, one of each generation, and what
// each answers to the first call that needs a driver: CUPTI_ERROR_NOT_INITIALIZED
// (15) or CUPTI_ERROR_UNKNOWN (999).
var realCupti = []struct{ version, result string }{
	{"11.8.87", "15"},
	{"12.9.79", "15"},
	{"13.5.25", "999"},
}

// hasDriver says whether a driver of NVIDIA's is here, with which CUPTI would not
// refuse.
func hasDriver() bool {
	_, err := os.Stat("/dev/nvidiactl")
	return err == nil
}

// TestRealCuptiWithoutDriver starts a program as libcuda would with each of
// NVIDIA's own libraries: the library is loaded and refuses, which the status says,
// and the program goes on as if nothing were.
func TestRealCuptiWithoutDriver(t *testing.T) {
	if hasDriver() {
		t.Skip("there is a driver here: what CUPTI does without one cannot be seen")
	}
	host := built(t, "inject/cupti/host")
	plugin := built(t, "libnccl-profiler-lockstep.so")
	for _, c := range realCupti {
		t.Run(c.version, func(t *testing.T) {
			libraries, err := filepath.Glob(filepath.Join(repoRoot(t), "bin", "cupti", c.version, "nvidia", "*", "lib", "libcupti.so.1*"))
			require.NoError(t, err)
			if len(libraries) != 1 {
				missing(t, "find libcupti %s: got %d files; `make e2e-cupti` downloads it", c.version, len(libraries))
			}
			ctx := t.Context()
			cmd := exec.CommandContext(ctx, host, plugin, "7")
			cmd.WaitDelay = time.Minute
			cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+t.TempDir(), "LOCKSTEP_CUPTI="+libraries[0])
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err = cmd.Run()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, 7, exit.ExitCode(), "the program's own exit status")
			assert.Empty(t, stderr.String(), "noise")
			refused := "CUPTI: refused (result " + c.result + ")"
			for line := range strings.Lines(stdout.String()) {
				name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch name {
				case "injection", "again":
					assert.Equal(t, "1", rest)
				case "pause":
					assert.Equal(t, "0", rest)
				case "resume": // nothing begins, and the reason is that of the start
					assert.Equal(t, c.result, rest)
				default:
					assert.Contains(t, rest, refused, name)
				}
			}
			assert.Equal(t, 7, strings.Count(stdout.String(), "\n"), "lines")
		})
	}
}
