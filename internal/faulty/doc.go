// SPDX-License-Identifier: Apache-2.0

// Package faulty writes the telemetry of jobs, nodes and clocks that have one fault each, one for every
// kind of finding, as receivers and agents would send it. It is for tests of gateways.
//
// What it writes follows from its arguments alone: the same fault at the same time is the same telemetry.
package faulty
