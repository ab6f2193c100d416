// SPDX-License-Identifier: Apache-2.0

// Package fuzzcomponents feeds random telemetry to every connector and processor of ours,
// each made by its factory, and checks what comes out. It holds tests only.
package fuzzcomponents
