// SPDX-License-Identifier: Apache-2.0

// Package epoch owns the lattices on which persistence domains agree: what a save of a job
// is known to hold (agreement), which epochs each domain can still give back (possession),
// and what follows from both: a verdict, the converged frontier and the lag behind it. It
// knows no file and no clock: a time is never evidence here.
package epoch
