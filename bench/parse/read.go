// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// counts are what both sides print of a trace.
type counts struct {
	Events      int64 `json:"events"`
	Operations  int64 `json:"operations"`
	Launched    int64 `json:"launched"`
	Collectives int64 `json:"collectives"`
	Steps       int64 `json:"steps"`
	// Kept is the number of events in memory; ours alone.
	Kept int64 `json:"kept,omitempty"`
}

// read parses a trace and makes all of its operations, as a receiver does.
func read(ctx context.Context, path string, out io.Writer) error {
	trace, err := kineto.ParseFile(ctx, path, kineto.DefaultOptions())
	if err != nil {
		return err
	}
	stats := trace.Stats()
	c := counts{Events: stats.Events, Kept: stats.Kept}
	for op := range trace.Ops() {
		c.Operations++
		if op.Launch.OK {
			c.Launched++
		}
		if op.Kind.IsComm() {
			c.Collectives++
		}
		if op.Kind == model.KindStep {
			c.Steps++
		}
	}
	return json.NewEncoder(out).Encode(c)
}
