// SPDX-License-Identifier: Apache-2.0

// Package watch owns when something is said of the saves of running jobs: it gives an engine what
// observers tell, forgets those that fell silent, and opens, updates and closes an episode where a
// save stays mixed, stays partial, or was the newest that a job could recover and is no more. What
// changes is not judged: only what has stood for a while is.
package watch
