// SPDX-License-Identifier: Apache-2.0

// Package watch owns when something is said of the versions of a fleet: that a communicator of a job
// spans two classes of versions of one domain that may not mix. A fleet that is being updated is
// always mixed somewhere; that matters to nobody but to those who compute together.
//
// Two nodes run different versions where both were heard to run theirs over a common span of time:
// then no order, delay within that span, repetition or loss of what was told can have made it up.
// What is not known of a member accuses nobody, and ends nothing.
package watch
