// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reportexporter

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

// A pipe at stdout whose reader has gone refuses the request for good, and does not end the process.
func TestOpenOutput_ReaderOfStdoutHasGone_Refused(t *testing.T) {
	const refused = 7
	if os.Getenv("LOCKSTEP_TEST_PIPE") != "" {
		out, err := openOutput(toStdout)
		if err != nil {
			os.Exit(1)
		}
		if _, err = out.write(t.Context(), []byte("line\n")); consumererror.IsPermanent(err) {
			os.Exit(refused)
		}
		os.Exit(2)
	}
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenOutput_ReaderOfStdoutHasGone_Refused$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_PIPE=1")
	cmd.Stdout = writer
	err = cmd.Run()
	require.NoError(t, writer.Close())
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, refused, status.ExitCode())
}
