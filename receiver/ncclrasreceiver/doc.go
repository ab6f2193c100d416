// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package ncclrasreceiver asks NCCL's RAS service how far the ranks of a job have come and
// who does not answer. What an answer means is the knowledge of internal/ras; this package
// owns who is asked and when, and the delivery.
package ncclrasreceiver
