// SPDX-License-Identifier: Apache-2.0

// Package stepmap owns how what the straggler analysis says of steps looks in
// telemetry: annotations on spans, the step's story, and metrics. The straggler
// processor and connector share it.
package stepmap
