// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package stragglerconnector is the face of internal/straggler that concludes:
// it turns operation spans into finding events, metrics and stories. It computes
// nothing itself; internal/otelmap/stepmap maps what the engine says.
package stragglerconnector
