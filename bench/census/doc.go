// SPDX-License-Identifier: Apache-2.0

// Command census counts, in the source of a tree, things that each have one place in the
// architecture and are done elsewhere, too: see ../README.md.
package main
