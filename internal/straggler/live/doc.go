// SPDX-License-Identifier: Apache-2.0

// Package live analyses jobs while they run: operations go in as they arrive, and step reports, changed
// findings and metrics come out.
package live
