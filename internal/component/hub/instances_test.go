// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValueLivesWithItsUsers(t *testing.T) {
	var m Map[string, *int]
	made := 0
	create := func() (*int, error) { made++; v := made; return &v, nil }
	a, err := m.Acquire("k", create)
	require.NoError(t, err)
	b, err := m.Acquire("k", create)
	require.NoError(t, err)
	assert.Same(t, a.Value, b.Value)
	a.Release()
	a.Release()
	c, err := m.Acquire("k", create)
	require.NoError(t, err)
	assert.Same(t, b.Value, c.Value, "a second release must not count")
	b.Release()
	c.Release()
	d, err := m.Acquire("k", create)
	require.NoError(t, err)
	assert.Equal(t, 2, *d.Value)
	d.Release()
	assert.Empty(t, m.entries)
}

func TestFailureLeavesNothing(t *testing.T) {
	var m Map[int, int]
	boom := errors.New("boom")
	_, err := m.Acquire(1, func() (int, error) { return 0, boom })
	require.ErrorIs(t, err, boom)
	assert.Empty(t, m.entries)
}
