// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package jobsextension connects a receiver that shares jobs with other collectors to the analyses behind it.
package jobsextension
