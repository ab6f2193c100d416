// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// perKind is how many messages are looked at: each way to make one comes several times.
const perKind = 64

// What a reader refuses costs nothing: half of the messages or more must be valid.
func TestKinds_Messages_AreReadAndDiffer(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		text, now, read, bytes := newTexts(1), time.Now(), 0, 0
		seen := map[[sha256.Size]byte]bool{}
		for n := range int64(perKind) {
			m := k.message(text, n, now)
			bytes += m.size()
			if reads(m) || k.name == "spans" {
				read++
			}
			seen[digest(t, m)] = true
		}
		assert.Equal(t, perKind, len(seen), "%s that differ", k.name) //nolint:testifylint // Len prints all of them
		assert.GreaterOrEqual(t, read, perKind/2, "%s that are read", k.name)
		assert.InDelta(t, 30e3, bytes/perKind, 20e3, "bytes of a message of %s", k.name)
	}
}

// digest is equal for messages that are.
func digest(t *testing.T, m message) [sha256.Size]byte {
	t.Helper()
	var text []byte
	var err error
	if m.isLogs {
		text, err = (&plog.ProtoMarshaler{}).MarshalLogs(m.logs)
	} else {
		text, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(m.traces)
	}
	require.NoError(t, err)
	return sha256.Sum256(text)
}

// reads reports whether a message is read. Texts may be shortened.
func reads(m message) bool {
	if !m.isLogs {
		ranks, _ := otelmap.TracesToOps(m.traces)
		return len(ranks) == 1 && len(ranks[0].Ops) == 1
	}
	rl := m.logs.ResourceLogs().At(0)
	return readsRecord(rl.Resource(), rl.ScopeLogs().At(0).LogRecords().At(0))
}

func readsRecord(of pcommon.Resource, lr plog.LogRecord) bool {
	if _, ok, err := clockmap.LogToEdge(lr); ok {
		return err == nil
	}
	if _, ok, err := resumemap.FromLog(of, lr); ok {
		return err == nil
	}
	if _, ok, err := epochmap.LogToObservation(of, lr); ok {
		return err == nil
	}
	if _, ok := otelmap.LogToFinding(lr, nil); ok {
		return true
	}
	_, ok := otelmap.LogToOpen(lr, nil)
	return ok
}

func TestTexts_Long_SpansTheSizes(t *testing.T) {
	text, short, long := newTexts(1), 0, 0
	for range 1000 {
		n := len(text.long())
		require.GreaterOrEqual(t, n, shortest-1)
		require.LessOrEqual(t, n, longest)
		if n < 20<<10 { // as likely as the others: the sizes' geometric mean
			short++
		} else {
			long++
		}
	}
	assert.InDelta(t, short, long, 150)
}

func TestSelected_UnknownKind_NamesThem(t *testing.T) {
	_, err := selected("operations,nothing")
	require.EqualError(t, err, `parse -kinds: got "nothing"; want some of operations, findings, edges, spans, jobs, resumes, epochs`)
	list, err := selected("jobs,edges")
	require.NoError(t, err)
	assert.Equal(t, []string{"jobs", "edges"}, []string{list[0].name, list[1].name})
}
