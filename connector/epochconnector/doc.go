// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package epochconnector concludes from observations of persistence domains which saves of a job
// are whole. What an observation means is the knowledge of internal/epoch, when something is said
// that of internal/epoch/watch; this package owns the way in and out.
package epochconnector
