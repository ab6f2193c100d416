// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Names of operations are kept for as long as their analyzer: each is cut, and their number bounded.
func TestAdd_LongNames_AreBoundedInBytes(t *testing.T) {
	cfg := Published()
	cfg.MaxKeys = 8
	a := New(cfg)
	for n := range int64(32) {
		a.Add(model.Rank{Rank: n % 2}, []model.Op{{
			Kind: model.KindCompute, Name: strings.Repeat("x", 100_000) + fmt.Sprint(n), Step: model.Some(n), Start: n * 10, End: n*10 + 5,
		}})
	}
	total := 0
	for _, name := range a.names.list {
		total += len(name)
	}
	assert.LessOrEqual(t, total, cfg.MaxKeys*cut.MaxName)
	assert.Len(t, a.names.list, cfg.MaxKeys, "names that differ at the end stay different")
	assert.Equal(t, int64(32-cfg.MaxKeys+1), a.Stats().KeysOverflowed)
}
