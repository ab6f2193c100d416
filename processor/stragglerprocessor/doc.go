// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package stragglerprocessor is the face of internal/straggler that annotates:
// it writes on operation spans who was waited for and how each rank's step was
// spent. It concludes nothing; that is the straggler connector's part.
package stragglerprocessor
