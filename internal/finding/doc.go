// SPDX-License-Identifier: Apache-2.0

// Package finding owns the life cycle of findings: open, revise, close, remember, withhold, and
// restore after a restart.
//
// An engine finds that something is wrong at a place. A [Book] opens a finding there, revises it
// when the engine's policy says that it has changed, and closes it when the policy says that it has
// ended. The policies (what is equal, how long to wait, what has ended) stay in the engines.
//
// The id of a finding is a hash of its place and of what was observed first, as [model.FindingID]
// defines it. It depends on no clock and on no counter of the process, so that two processes that
// observe the same data name a finding alike. A book remembers the ids that it has closed or
// dropped: a finding that is found again goes on under its old id with the next revision.
package finding
