// SPDX-License-Identifier: Apache-2.0

// Package safetensors owns the reading of the header of safetensors files: which tensors a
// file holds and where, and whether the file is as long as they need. No tensor is read.
package safetensors
