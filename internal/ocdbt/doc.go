// SPDX-License-Identifier: Apache-2.0

// Package ocdbt owns the reading of which files a database of TensorStore's OCDBT needs: its
// manifest and the nodes of its newest tree, which are checksummed, and where they say that
// values lie. No value is read. docs/format/ocdbt.md has the layout.
package ocdbt
