// SPDX-License-Identifier: Apache-2.0

// Ceiling measures how many spans one core of a gateway analyses, stage by stage, for jobs of
// growing size. docs/scale.md has what came of it.
package main
