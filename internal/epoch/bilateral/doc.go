// SPDX-License-Identifier: Apache-2.0

// Package bilateral owns the exchange by which the persistence domains of a job commit a save
// together: a domain's confirmation counts when it was reflected back to it by all others. The rule
// is modelled in docs/models/bilateral.pml, the messages are specified in docs/format/commit.md.
//
// A Board carries what domains tell to one another and counts it. It keeps nothing that must
// survive: what a save's safety rests on is on the domains' own disks, and a board that forgets,
// repeats or withholds costs time alone.
package bilateral
