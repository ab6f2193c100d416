// SPDX-License-Identifier: Apache-2.0

// Package otelmap owns the mapping between the domain of internal/model and
// OpenTelemetry's pdata, in both directions. It is the only package that knows
// which field is which attribute: each is one row of a table (opFields,
// rankFields, findingFields) that serves writing and reading alike, so that the
// two cannot drift apart. Names come from internal/semconv.
//
// Reading is tolerant: a span that is no operation of ours is passed over, one
// that can not be true (of an unknown kind, a negative rank or step, an end
// before its start) is left out, and so is an attribute of the wrong type; all
// are counted and reported as problems, never as a failure.
//
// The package keeps nothing between two calls. What lives longer is the caller's, who passes it: Problems,
// and the decoder by which the states of many ranks share lists.
package otelmap

// ScopeName is the instrumentation scope of what this package writes.
const ScopeName = "github.com/lockstep-otel/lockstep"
