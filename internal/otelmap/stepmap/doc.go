// SPDX-License-Identifier: Apache-2.0

// Package stepmap maps the reports of the straggler analysis to telemetry: annotations on spans, and step
// traces. It keeps nothing between two calls. The straggler processor and connector share it.
package stepmap
