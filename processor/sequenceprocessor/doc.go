// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package sequenceprocessor is the face of internal/sequence in a pipeline: it numbers spans, or reads their numbers.
package sequenceprocessor
