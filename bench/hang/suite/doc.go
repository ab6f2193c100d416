// SPDX-License-Identifier: Apache-2.0

// Package suite judges the diagnosis of hangs on simulated jobs with known truth: every
// family of faults, with dumps missing, cut or wrapped.
package suite
