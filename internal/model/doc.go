// SPDX-License-Identifier: Apache-2.0

// Package model owns the domain of Lockstep: what an operation, a rank, a
// communicator, a collective and a finding are, and the identity functions that
// decide whether two observations speak of the same thing. It knows nothing of
// wire formats or of the collector; internal/otelmap maps it to telemetry.
//
// Times are Unix nanoseconds of the clock named by ClockID; durations that
// people read are seconds.
package model
