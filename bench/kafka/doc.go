// SPDX-License-Identifier: Apache-2.0

// Command kafka compares the exporters partitioned_kafka and contrib's kafka on the same requests and one real
// broker: what a span costs, how records spread over partitions, whether the parts of a collective stay
// together, and how large a step may be.
package main
