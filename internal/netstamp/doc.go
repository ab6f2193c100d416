// SPDX-License-Identifier: Apache-2.0

// Package netstamp sends and receives UDP packets and says when they passed the
// network device, as readings of the host's CLOCK_MONOTONIC_RAW.
//
// The kernel stamps packets on CLOCK_REALTIME, which NTP slews and administrators
// step. Raw is neither, so everything that measures frequencies stands on raw. A
// stamp is carried over by readings of both clocks taken together (Pair): one
// before it and one after it, the latter read when the stamp is fetched.
//
// The Width of a stamp is a half width: the packet passed within Raw ± Width. It
// holds the pair's own width, and what the rate of realtime against raw may have
// changed between the stamp and the pair, of which MaxRate is the assumption. It
// assumes further that realtime is not stepped by less than 1 µs, and not forth
// and back between two pairs (20 ms). A larger step, or a change of rate that the
// pairs show, makes the stamps between two pairs worthless: they are dropped and
// counted, as are stamps of the ms after it, in which the rate is measured anew,
// and stamps whose realtime occurred twice because realtime was set back.
//
// The edges between both clocks rest on the same readings, and hold from the first of them
// to the last: also where the rate changes between two, unless it does so twice in a row.
//
// Stamps are of the kinds of package stamp: by the NIC, by the kernel, or by this
// program, where nothing better is offered. A stamp of the program on sending is
// taken before the packet leaves, and one on receiving after it came, so that
// both stay valid in bounds.
//
// Of a packet that a NIC stamps on sending, the kernel tells its own stamp as well,
// and first. It is held for the NIC's, which arrives with the packet's completion, and
// serves where none does within 200 ms.
//
// Hardware stamps and the PHC are tested against a fake only: none of the
// machines that this package was written on has a NIC with such a clock.
package netstamp
