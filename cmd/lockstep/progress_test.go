// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/report/terminal"
)

func TestProgressOfLongInput(t *testing.T) {
	var w bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&w, 4<<20, true, func() time.Time { return now })
	p.advance(1 << 20)
	assert.Empty(t, w.String(), "short input shows no bar")
	now = now.Add(200 * time.Millisecond)
	p.advance(1 << 20)
	assert.Contains(t, w.String(), " 50 %  2.00 MiB of 4.00 MiB")
	assert.Equal(t, barWidth/2, strings.Count(w.String(), "#"))

	drawn := w.Len()
	p.advance(1)
	assert.Equal(t, drawn, w.Len(), "not drawn at every read")
	p.clear()
	assert.True(t, strings.HasSuffix(w.String(), " \r"), "the bar is removed at the end")
}

func TestProgressIsNotShown(t *testing.T) {
	var w bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&w, 10, false, func() time.Time { return now })
	now = now.Add(time.Hour)
	_, err := io.Copy(io.Discard, p.reader(strings.NewReader("0123456789")))
	require.NoError(t, err)
	p.clear()
	assert.EqualValues(t, 10, p.done)
	assert.Empty(t, w.String())
}

func TestStyleOffTerminal(t *testing.T) {
	env := func(string) string { return "" }
	assert.Zero(t, terminal.StyleOf(&bytes.Buffer{}, env))
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	assert.Zero(t, terminal.StyleOf(f, env))
}
