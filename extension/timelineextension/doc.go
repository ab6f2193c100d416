// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package timelineextension holds the timeline of a collector: components feed it
// edges and models of clocks and place readings on it, people look at it over HTTP,
// and a storage extension keeps it across a restart. What the timeline says is
// decided in internal/timeline.
package timelineextension
