// SPDX-License-Identifier: Apache-2.0

// Package training simulates jobs that train a model in parallel over many ranks, as
// operations of every rank, with a truth that is known exactly: what is wrong, where,
// since when, and what it costs. It knows nothing of who judges them, and no engine
// imports it.
package training
