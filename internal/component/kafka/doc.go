// SPDX-License-Identifier: Apache-2.0

// Package kafka is what the exporter and the receiver of Kafka topics have in common: how they reach the
// brokers, and what an error of the client means to an operator. The client is github.com/IBM/sarama.
package kafka
