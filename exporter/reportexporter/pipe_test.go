// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reportexporter

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

// A pipe at stdout whose reader has gone refuses the request for good, and does not end the process.
func TestOpenOutput_ReaderOfStdoutHasGone_Refused(t *testing.T) {
	const answer = "refused for good"
	if os.Getenv("LOCKSTEP_TEST_PIPE") != "" {
		out, err := openOutput(toStdout)
		require.NoError(t, err)
		_, err = out.write(t.Context(), []byte("line\n"))
		assert.True(t, consumererror.IsPermanent(err))
		_, _ = os.Stderr.WriteString(answer)
		return
	}
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenOutput_ReaderOfStdoutHasGone_Refused$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_PIPE=1")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &output
	_ = cmd.Run() // the test cannot print that it passed
	require.NoError(t, writer.Close())
	assert.Contains(t, output.String(), answer)
}
