// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/hostid"
)

func TestAHostBelongsToOneNode(t *testing.T) {
	o := newOwners(hostid.Host{ID: "me", Boot: "1"})
	require.NoError(t, o.claim("host:a/1/raw", "a", 1))
	require.NoError(t, o.claim("host:a/1/raw", "a", 2), "its second NIC, or its next window")
	assert.True(t, o.holds("host:a/1/raw"))
	require.ErrorIs(t, o.claim("host:me/b/raw", "b", 2), errOwnClock)
	require.ErrorIs(t, o.claim("host:me/c/raw", "b", 2), errOwnClock)

	require.NoError(t, o.claim("host:a/9/raw", "b", 2))
	assert.False(t, o.holds("host:a/1/raw"), "another machine of the same image: neither counts")
	assert.False(t, o.holds("host:a/9/raw"))
	require.ErrorIs(t, o.claim("host:a/9/raw", "c", 2), errOtherOwner, "a third one")
	first, second := o.claimants("host:a/9/raw")
	assert.Equal(t, [2]string{"a", "b"}, [2]string{first, second})

	require.NoError(t, o.claim("host:a/1/raw", "a", 3))
	o.forget(3)
	assert.True(t, o.holds("host:a/1/raw"), "the other one is silent")
	require.NoError(t, o.claim("host:a/9/raw", "b", 4))
	o.forget(4)
	assert.True(t, o.holds("host:a/9/raw"), "now the first is")
	assert.False(t, o.holds("host:a/1/raw"))
	o.forget(5)
	assert.Empty(t, o.hosts)
	assert.Zero(t, o.nodes.Len())

	require.NoError(t, o.claim("stamp:10.0.0.1/realtime", "c", 5))
	assert.True(t, o.holds("stamp:10.0.0.1/realtime"))
	require.NoError(t, o.claim("stamp:10.0.0.1/realtime", "d", 5))
	assert.False(t, o.holds("stamp:10.0.0.1/realtime"))
}

func TestANodeIsOneHostInOneBoot(t *testing.T) {
	o := newOwners(hostid.Host{ID: "me", Boot: "1"})
	require.NoError(t, o.claim("host:a/1/raw", "a", 1))
	require.ErrorIs(t, o.claim("host:b/1/raw", "a", 1), errManyClocks, "another host")
	assert.False(t, o.holds("host:b/1/raw"))
	require.NoError(t, o.claim("host:b/1/raw", "b", 1), "whose it is")
	require.NoError(t, o.claim("host:a/2/raw", "a", 2), "booted anew")
	assert.True(t, o.holds("host:a/2/raw"))
	assert.False(t, o.holds("host:a/1/raw"), "one at a time")
	require.ErrorIs(t, o.claim("host:a/1/raw", "a", 2), errFormerClock, "packets that came late")
	for boot := range 100 {
		require.ErrorIs(t, o.claim(fmt.Sprintf("host:a/%d/raw", boot+3), "a", 3), errManyClocks)
	}
	require.NoError(t, o.claim("host:a/3/raw", "a", 2+idleWindows))
	require.NoError(t, o.claim("stamp:10.0.0.1/realtime", "a", 3), "an address of it that knows no TLV of ours")
	assert.Equal(t, 2, o.nodes.Len())
}

// Of neighbours those are forgotten that fell silent, and not those that were heard since.
func TestOwners_OldestIsHeardAgain_OtherIsForgotten(t *testing.T) {
	o := newOwners(hostid.Host{ID: "me", Boot: "1"})
	for _, h := range []struct {
		name   string
		window int64
	}{{"a", 1}, {"b", 1}, {"a", 2}} {
		require.NoError(t, o.claim("host:"+h.name+"/1/raw", h.name, h.window))
		o.addRival("host:me/1/raw", "rival "+h.name, h.window)
	}
	o.forget(2)
	assert.Equal(t, []string{"a"}, slices.Collect(o.nodes.Keys()))
	assert.Equal(t, []string{"rival a"}, slices.Collect(o.rivals.Keys()))
}

func TestUnusableClockNames(t *testing.T) {
	o := newOwners(hostid.Host{ID: "me", Boot: "1"})
	for _, name := range []string{
		"", "x", "host:", "host:a\n/1/raw", "host:ä/1/raw", "host a", strings.Repeat("x", maxClockName+1),
		"host:a/1/realtime", "host:a/1/raw/raw", "host:a/raw", "host:/1/raw", "host:a//raw", " host:a/1/raw",
		"service:checkout/realtime", "utc:chrony/7f7f0101", "timeline:x", "nic:a/eth0/phc", "gpu:0",
		"host:" + strings.Repeat("x", maxClockName) + "/1/raw",
	} {
		require.ErrorIs(t, o.claim(name, "a", 1), errBadClock, "%q", name)
	}
	assert.Empty(t, o.hosts)
}
