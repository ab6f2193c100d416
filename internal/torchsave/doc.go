// SPDX-License-Identifier: Apache-2.0

// Package torchsave owns the reading of what torch.save writes, without loading a tensor:
// a zip file whose data.pkl holds the value, with tensors left out, and one record for each
// storage. It reads the directory at the file's end, data.pkl, and single numbers, so that
// the cost of a look does not grow with the tensors.
package torchsave
