// SPDX-License-Identifier: Apache-2.0

// Package repocheck owns the tests about the repository itself: that the
// builder's manifest, the generated distribution and the root module agree,
// that the documentation's relative links and the index of decisions
// point at files that exist, and that imports point down. It holds no code
// that anything imports.
package repocheck
