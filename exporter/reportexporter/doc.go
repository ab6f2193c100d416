// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package reportexporter writes findings as text for people, to the terminal or to a file.
package reportexporter
