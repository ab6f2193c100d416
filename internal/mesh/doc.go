// SPDX-License-Identifier: Apache-2.0

// Package mesh says who probes whom: it reads the list of members, from a
// setting, a file or DNS, and makes of it a random regular graph that every node
// computes alone.
//
// Nobody is asked and nothing is agreed on: nodes that see the same list see the
// same graph. Where lists differ for a while, as when a member joins, the graphs
// differ only near that member.
package mesh
