// SPDX-License-Identifier: Apache-2.0

// Package broker starts a real Kafka broker for benchmarks.
package broker
