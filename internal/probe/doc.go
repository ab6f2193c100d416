// SPDX-License-Identifier: Apache-2.0

// Package probe is a node of the probe mesh: end points that answer and probe with
// STAMP packets, what that says of the clocks of hosts (edges), and of the paths
// between them (one-way delays, loss, reordering).
//
// An end point is one address of the host. It answers on one socket, and probes
// from several, one for each path: routers that spread flows over equal routes do
// it by ports. All end points of a host stand on one clock, MONOTONIC_RAW,
// whichever NIC they are of; so what several of them, and several paths, show of
// one peer's clock goes into one estimate, in which the fastest messages decide.
//
// Probes leave in pairs, back to back. How the spacing of a pair changed under way
// tells whether there was a queue (counted as coded.pairs and coded.pure). By
// default that is all that it does: with the kernel's stamps, the estimate from
// every packet is better than the one from pure pairs alone (BenchmarkEvidence),
// since the envelope ignores what was held up, and lacks what is left out.
//
// Who is who: a peer is a node of the list of members, with one or more addresses;
// nobody else is answered. Its clock is the one that its packets name, the raw clock of
// one host in one boot. Of a host that two nodes name, neither counts, until one of
// both was silent for 16 windows: nobody can tell who lies. All that a node says is
// refused while it names ours. Machines made from one image share a host and no boot,
// so their clocks have names of their own, and what we say of ours goes on. A machine
// resumed from one snapshot shares both, and what we say would be taken for what it
// says: no edges leave a node that begins beside another with its clock's name, that
// hears two, or that is asked by one that has its memory (lineage). One that bore the name
// alone for 16 windows is not silenced by one that comes later and has not: it may be
// a liar. A peer that was booted anew has another clock, and the
// old one is forgotten; it may do so once in 16 windows. A reflector that does not know
// our TLV has a clock of its own, stamp:<address>/realtime, since what stands in its
// packets is its time of day, within the error that they claim.
//
// A trip whose four stamps cannot all be true, since the peer would have held it for
// longer than we waited, or its answer left at a reading that was told of it or of the one before, is no
// evidence. Where more than one in ten of a clock's is such, an edge with bounds that
// cross, or one that says that it is contradicted, follows the ordinary one: the graph does
// not take it, and remembers who was part of it.
//
// Only who probes learns: requests do not say when those before them left, and both
// directions of an exchange are in its reply. Where peers probe each other, both have
// an estimate of their own.
//
// What REALTIME reads beside RAW needs no packets. It is told of with each window, for
// solutions, and every PairInterval, for spans: they bear REALTIME, which may be slewed
// from any moment on.
//
// Windows end when it is first seen that a multiple of their length has passed on
// REALTIME, on all nodes at about the same time. A delay is told when an estimate covers its message, which is a
// window later, or more where there are few.
package probe
