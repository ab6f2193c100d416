// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package sequenceextension keeps the ledger of internal/sequence in a storage extension, for the processor sequence
// and the analyses of a gateway.
package sequenceextension
