// SPDX-License-Identifier: Apache-2.0

// Package clockstate reads what the daemons that discipline a host's clock say of
// it: chronyd (the report `tracking` of its monitoring protocol, version 6) and
// ptp4l (management messages, TIME_STATUS_NP above all). It only asks; nothing here
// changes a daemon or a clock.
//
// What is read becomes an edge between the host's clock and "utc:chrony/..." or
// "utc:ptp/...". The two differ in what they promise:
//
//   - NTP bounds: root dispersion plus half the root delay is by how much the host can
//     be off if all servers up to the first are right. That is the edge's bound.
//   - PTP does not: its offset is one message less a filtered delay, and a message that
//     queued is late by as much as it queued. Its edge is an estimate without bounds.
//
// Hosts are joined by a reference only where both name the same one: a server by its
// address, a grandmaster by its identity. A reference of one host alone (a receiver
// of its own, a server on the loopback interface) gets the host's clock into its name.
package clockstate
