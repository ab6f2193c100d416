// SPDX-License-Identifier: Apache-2.0

// Package stamp speaks STAMP (RFC 8762, RFC 8972): the packets of the probe mesh,
// the session-sender and the session-reflector. The bytes are docs/format/stamp.md.
//
// It is pure: no sockets, no clock. Whoever owns the socket hands in packets and
// stamps and sends what comes out; so sender and reflector run the same under a
// test, a simulator and a kernel.
//
// Everything received is hostile until shown otherwise. Both ends hold a bounded
// amount of state, a reply is never longer than its request, a refused packet is
// counted under its reason and changes nothing else, and with a key nothing
// unsigned changes anything at all.
//
// Senders and reflectors are not safe for concurrent use; a Key is.
package stamp
