// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package jobkafkareceiver reads topics of Kafka that are keyed by job, for analyses that keep open steps: after a
// kill it reads again what they had not concluded.
package jobkafkareceiver
