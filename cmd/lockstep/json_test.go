// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// What the engine counts is in the JSON, each under a name of its own.
func TestAllThatTheEngineCountsIsInTheJSON(t *testing.T) {
	var stats straggler.Stats
	fields := reflect.ValueOf(&stats).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(i + 1))
	}
	var counts []int64
	for _, n := range lostOutput(&stats) {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	for i := range fields.NumField() {
		assert.Contains(t, counts, int64(i+1), fields.Type().Field(i).Name)
	}
	assert.Len(t, counts, fields.NumField())
}
