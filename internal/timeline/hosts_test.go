// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
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
	require.NoError(t, next.Restore(snapshotOf(w.tl)))
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

// Of two boots of a host that are heard of at a time nobody knows whose spans bear its
// name: it is neither's, and does not go to and fro.
func TestTwoLiveBootsOfAHost(t *testing.T) {
	w := cluster(t, 96, 4)
	second := "host:h1/b2"
	w.clocks[second+"/raw"], w.clocks[second+"/realtime"] = linear(9e14, 3), linear(epoch+70_000, 0)
	for range 3 {
		w.window()
	}
	resolves := func() string { id, _ := w.tl.Resolve("h1"); return id }
	assert.Equal(t, realtime(1), resolves())
	w.join(second+"/raw", second+"/realtime", model.EdgePair)
	w.join(second+"/raw", raw(2), model.EdgeProbe)
	w.window()
	assert.Equal(t, second+"/realtime", resolves(), "the host has booted")
	for w.now < 20*sec {
		w.window()
	}
	for range 20 {
		assert.Empty(t, resolves(), "both live")
		w.window()
	}
	assert.Equal(t, int64(1), w.tl.Counters().HostsAmbiguous)
	// The second one falls silent.
	pairs := w.pairs
	w.pairs = nil
	for _, p := range pairs {
		if p[0] != second+"/raw" {
			w.pairs = append(w.pairs, p)
		}
	}
	for range 35 {
		assert.NotEqual(t, second+"/realtime", resolves())
		w.window()
	}
	assert.Equal(t, realtime(1), resolves())
	for range 300 {
		w.window()
		require.Equal(t, realtime(1), resolves(), "and stays")
	}
	assert.Empty(t, w.tl.rivals)
}

// A host that was booted leaves what came late behind.
func TestABootIsNoRival(t *testing.T) {
	w := cluster(t, 97, 4)
	for range 3 {
		w.window()
	}
	second := "host:h1/b2"
	w.clocks[second+"/raw"], w.clocks[second+"/realtime"] = linear(9e14, 3), linear(epoch, 0)
	for i, p := range w.pairs {
		for k, id := range p {
			if parse(id).host == "h1" {
				w.pairs[i][k] = second + id[len("host:h1/b1"):]
			}
		}
		w.source[w.pairs[i]] = w.source[p]
	}
	w.window()
	for range 10 {
		id, ok := w.tl.Resolve("h1")
		assert.True(t, ok)
		assert.Equal(t, second+"/realtime", id)
		w.window()
	}
	assert.Zero(t, w.tl.Counters().HostsAmbiguous)
}

// The clock of spans that name no boot stands back behind one that somebody reads.
func TestClockOfAnyBoot(t *testing.T) {
	w := cluster(t, 98, 3)
	any := "host:h1/?/realtime"
	w.clocks[any] = linear(epoch, 0)
	w.join(any, realtime(2), model.EdgeCall)
	for range 12 {
		w.window()
		id, _ := w.tl.Resolve("h1")
		assert.Equal(t, realtime(1), id)
	}
	next := New(w.tl.opt)
	require.NoError(t, next.Restore(snapshotOf(w.tl)))
	id, _ := next.Resolve("h1")
	assert.Equal(t, realtime(1), id)
}

func TestNameOfAHost(t *testing.T) {
	w := cluster(t, 92, 2)
	w.window()
	assert.Equal(t, "h0", w.tl.NameOf("h0"), "nobody told one")
	w.tl.Alias("node-0", "h0")
	assert.Equal(t, "node-0", w.tl.NameOf("h0"))
	assert.Equal(t, "h1", w.tl.NameOf("h1"))
	w.tl.Alias("localhost", "h0")
	assert.Equal(t, "h0", w.tl.NameOf("h0"), "it has two")
	w.tl.Alias("localhost", "h1")
	assert.Equal(t, "node-0", w.tl.NameOf("h0"), "localhost names nobody")
}
