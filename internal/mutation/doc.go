// SPDX-License-Identifier: Apache-2.0

// Package mutation compares two tiers of a test suite by the mutants that they kill. A
// mutant is a copy of a package with one small change, such as another threshold. A tier
// kills a mutant where one of its tests fails or exceeds its time limit.
//
// Load parses and type-checks packages, Find lists their mutants, a Sampler draws from
// them, a Judge runs the tests on one mutant, and a Campaign judges a whole sample. The
// change reaches the compiler as an overlay, so that no source file is written to.
package mutation
