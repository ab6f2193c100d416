// SPDX-License-Identifier: Apache-2.0

// Command compare builds two revisions, runs both on the same inputs and prints what differs:
// see ../README.md.
package main
