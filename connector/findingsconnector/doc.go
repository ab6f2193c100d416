// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package findingsconnector is where findings leave the analyses and reach
// people: it gives each finding out once per change, as a log event, as a count,
// and, when it closes, as a span. The rules are those of internal/incident; this
// package feeds that engine from a logs pipeline and maps what it says.
package findingsconnector
