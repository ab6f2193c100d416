// SPDX-License-Identifier: Apache-2.0

// Package demo holds the C sources of the demo's worker, one rank of a training
// job, and the Go tests that build and run it.
package demo
