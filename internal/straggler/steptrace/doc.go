// SPDX-License-Identifier: Apache-2.0

// Package steptrace selects the spans of a step that explain it, its step trace, and holds the operations of
// open steps until then. A tracing backend cannot show the millions of spans of a large step.
package steptrace
