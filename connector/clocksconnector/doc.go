// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package clocksconnector is where clock events meet the timeline: it takes edges,
// and models that another gateway solved, from a logs pipeline, and gives out the
// solved models, findings about clocks, and metrics. What is solved and found is
// decided in internal/timeline.
package clocksconnector
