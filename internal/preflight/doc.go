// SPDX-License-Identifier: Apache-2.0

// Package preflight owns the question that is asked before a job resumes: does every
// persistence domain confirm the epoch that it would resume from? It joins what
// internal/ckpt read in one or several folders, lets internal/epoch judge it, and says
// which epoch is the newest that is safe.
package preflight
