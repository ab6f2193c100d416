// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// lineage is a secret that a node draws when it is made and tells nobody: who knows it
// has the node's memory, as a machine has that was resumed from a snapshot in which the
// node ran.
type lineage [32]byte

func newLineage() (l lineage) {
	_, _ = rand.Read(l[:]) // which never fails
	return l
}

// mark is what a request to an end point bears. It holds for that one alone: no node
// asks itself, so who answers us learns none that we would take for a copy's.
func (l *lineage) mark(to netip.AddrPort) uint64 {
	at, _ := netip.AddrPortFrom(plain(to.Addr()), to.Port()).MarshalBinary() // never fails
	h := hmac.New(sha256.New, l[:])
	h.Write(at)
	return binary.BigEndian.Uint64(h.Sum(nil))
}
