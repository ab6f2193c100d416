// SPDX-License-Identifier: Apache-2.0

// Package resume owns whether the ranks of one life of a job have loaded one state: each says what it
// holds before its first step, and step and optimizer step must be the same on all of them, the data
// cursor and the state of random generators on those that say that they share them. What ranks hold
// joins on the flat lattice of package epoch, so that order, repetition and loss make up no
// disagreement; a rank that is silent confirms nothing.
package resume
