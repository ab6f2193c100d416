// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package jsonlinesexporter appends telemetry to a file as OTLP JSON, one request a line.
package jsonlinesexporter
