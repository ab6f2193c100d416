// SPDX-License-Identifier: Apache-2.0

// Package recording simulates training jobs of any size, and keeps what their agents send in a file, so that
// benchmarks can give it to what they measure.
package recording
