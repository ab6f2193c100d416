// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package clockskewprocessor is the face of internal/causality: it puts spans of
// many clocks on one timeline, keeps what they were, and says of each time that
// cannot be what is to blame for it. It holds no span back and concludes nothing
// of clocks: what it learns of them goes to the timeline.
package clockskewprocessor
