// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package rankeventsreceiver reads the event rings that code inside a job's
// processes writes, and emits what each rank did while the job runs. What records
// mean is the knowledge of internal/rankevents, how a ring is read that of
// internal/ring; this package owns which rings are read and when, and the
// delivery. The receivers of one configuration share one reader, since a ring
// would be drained twice otherwise.
package rankeventsreceiver
