// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// line is a line of the file of findings.
func line(t *testing.T, job, class string, rank int64) []byte {
	t.Helper()
	return lineOf(t, &model.Finding{JobID: job, Kind: model.FindingStraggler, Class: class, Rank: model.Some(rank), ID: "x", Revision: 1})
}

func lineOf(t *testing.T, f *model.Finding) []byte {
	t.Helper()
	text, err := (&plog.JSONMarshaler{}).MarshalLogs(otelmap.FindingsToLogs([]model.Finding{*f}))
	require.NoError(t, err)
	return append(text, '\n')
}

func TestReader_LinesOfAJob_GiveItsVerdict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.jsonl")
	r := newReader(path)
	require.NoError(t, r.read(), "not there yet")
	job := jobPrefix + "straggling-early"
	assert.Equal(t, missing, r.verdict(job, &straggling))

	whole := line(t, job, model.ClassCompute, 5)
	require.NoError(t, os.WriteFile(path, append(line(t, "hostile", model.ClassHost, 1), whole[:20]...), 0o600))
	require.NoError(t, r.read())
	assert.Equal(t, missing, r.verdict(job, &straggling), "a line that is not whole is not read yet")

	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write(whole[20:])
	require.NoError(t, err)
	require.NoError(t, r.read())
	assert.Equal(t, right, r.verdict(job, &straggling))

	_, err = file.Write(line(t, job, model.ClassCompute, 4))
	require.NoError(t, err)
	require.NoError(t, r.read())
	assert.Equal(t, "wrong (straggler compute, rank 4)", r.verdict(job, &straggling))
}

// A fault lasts as long as its job: where its finding was closed, something pushed it out.
func TestReader_FindingThatWasClosed_IsNotRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.jsonl")
	r := newReader(path)
	job := jobPrefix + "straggling-early"
	for _, tt := range []struct {
		id, status, want string
		revision         int64
	}{
		{"x", model.StatusOpen, right, 1},
		{"x", model.StatusClosed, closed, 2},
		{"x", model.StatusOpen, closed, 1},
		{"y", model.StatusOpen, right, 1},
	} {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = file.Write(lineOf(t, &model.Finding{
			JobID: job, Kind: straggling.kind, Class: straggling.class, Rank: model.Some(straggling.rank), ID: tt.id, Revision: tt.revision, Status: tt.status,
		}))
		require.NoError(t, errors.Join(err, file.Close()))
		require.NoError(t, r.read())
		assert.Equal(t, tt.want, r.verdict(job, &straggling), "%+v", tt)
	}
}

func TestCounters_Page_SumsSeries(t *testing.T) {
	got := counters([]byte("# HELP x y\notelcol_receiver_refused_spans{a=\"b c\"} 3\notelcol_receiver_refused_spans{a=\"d\"} 4\notelcol_x 0\ngo_y 1\n"))
	assert.Equal(t, map[string]float64{"otelcol_receiver_refused_spans": 7}, got)
	assert.InDelta(t, 7, refusals(got), 0)
}
