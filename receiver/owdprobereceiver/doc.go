// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package owdprobereceiver measures the clocks of hosts against each other, and
// the one-way delays between them, with packets of its own. What a packet says is
// the knowledge of internal/probe; this package owns the configuration, who this
// host is, and the delivery of edges and metrics.
package owdprobereceiver
