// SPDX-License-Identifier: Apache-2.0

// Package score owns the rules by which accusations are compared with the truth of a
// simulated job.
package score
