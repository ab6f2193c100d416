// SPDX-License-Identifier: Apache-2.0

// Command mutation measures how many of the mutants that the full tier of tests kills are
// killed by the quick tier: see README.md.
package main
