// SPDX-License-Identifier: Apache-2.0

// Package otlpfile owns the reading of OTLP JSON files of spans: what the
// collector's file exporter writes (one object a line) and whole-file objects.
// A damaged value costs only itself.
package otlpfile
