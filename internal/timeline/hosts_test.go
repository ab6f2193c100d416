package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A name that two hosts have names neither, until only one has it.
func TestAmbiguousName(t *testing.T) {
	w := cluster(t, 90, 3)
	w.window()
	resolves := func() string {
		id, ok := w.tl.Resolve("localhost")
		assert.Equal(t, ok, id != "")
		return id
	}
	w.tl.Alias("localhost", "h0")
	assert.Equal(t, realtime(0), resolves())
	w.tl.Alias("localhost", "h1")
	assert.Empty(t, resolves())
	w.tl.Alias("localhost", "h2")
	assert.Empty(t, resolves(), "nor do three")
	assert.Equal(t, int64(1), w.tl.Counters().AliasesAmbiguous)
	next := New(w.tl.opt)
	require.NoError(t, next.Restore(w.tl.Snapshot()))
	_, ok := next.Resolve("localhost")
	assert.False(t, ok)
	// Only host 1 is told of any more.
	for range 310 {
		w.window()
		w.tl.Alias("localhost", "h1")
	}
	w.now += int64(time.Minute)
	assert.Equal(t, realtime(1), resolves())
	assert.Equal(t, int64(1), w.tl.Counters().AliasesAmbiguous)
}

func TestNamesAreForgotten(t *testing.T) {
	w := cluster(t, 91, 2)
	w.window()
	w.tl.Alias("node-1", "h1")
	w.tl.Alias("gone", "h9")
	w.tl.Alias(strings.Repeat("n", 257), "h1")
	assert.Len(t, w.tl.aliases, 2)
	for range 310 {
		w.window()
	}
	_, ok := w.tl.Resolve("node-1")
	assert.True(t, ok, "told once is enough while the host is there")
	assert.Len(t, w.tl.aliases, 1)
}
