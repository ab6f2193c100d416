// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package partitionedkafkaexporter writes spans and log records to Kafka so that what is analysed together is in
// one partition: the parts of a collective, or all of a job.
package partitionedkafkaexporter
