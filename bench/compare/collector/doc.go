// SPDX-License-Identifier: Apache-2.0

// Package collector holds the program that bench/compare builds of each revision: it runs one
// collector configuration in the fake time of testing/synctest and records what reaches the
// exporters. Hours pass in milliseconds, and times in findings are the same in every run.
//
// bench/compare copies this folder into a revision that lacks it. So the package uses nothing
// of this repository but factories of components.
package collector
