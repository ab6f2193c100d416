// SPDX-License-Identifier: Apache-2.0

// Package e2e owns the tests that run the built collector, with the published
// configurations, against real parts: Jaeger compiled from its module and
// Prometheus as packaged; and those of our library inside programs that use NVIDIA's
// NVTX. It is a module of its own so that nothing else depends on what it needs.
//
// A part that is missing skips the tests that need it, except where
// LOCKSTEP_E2E_REQUIRE=1 is set, as it is in CI: there it fails them.
package e2e
