// SPDX-License-Identifier: Apache-2.0

// Package intake owns the rules which trace file speaks for which rank of which
// job: the order in which files are read, the rank of a file that does not state
// it, the number of ranks of a job, and which of several files of one rank is
// taken. Whoever reads traces asks it, so that all come to the same ranks.
package intake
