// SPDX-License-Identifier: Apache-2.0

// Package incident owns what becomes of findings after an analysis has made
// them: it keeps the highest revision of each, joins the findings of one
// incident, and decides when a finding is closed.
//
// A finding is known by its id. Equal and lower revisions change nothing, so
// that a repeated or reordered delivery is harmless; a source repeats a revision
// to say that the finding still stands. Findings are of one
// incident when they concern the same job and incarnation, their intervals
// overlap, and they share a host, a device, a link, a rank or a communicator. One
// of no job, as of a host's clock, joins those of its host; one that does not know
// its job's life, as of dumps, those of the job. Who only waits is no place of a
// hang. The incident's id follows from its first finding; where a later finding
// connects two incidents, the older one takes in the younger.
package incident
