// SPDX-License-Identifier: Apache-2.0

// Command scoreboard simulates training jobs of which it is known what is wrong with
// them, lets several methods name stragglers in them, and prints who was right: see
// README.md.
package main
