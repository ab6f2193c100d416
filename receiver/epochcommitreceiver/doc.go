// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package epochcommitreceiver is the epoch_commit receiver: by HTTP it carries what the persistence
// domains of a job tell to one another as they commit a save together, and emits how far they are as
// observations of epochs. The exchange is internal/epoch/bilateral's.
package epochcommitreceiver
