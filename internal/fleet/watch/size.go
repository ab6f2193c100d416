// SPDX-License-Identifier: Apache-2.0

package watch

import "unsafe"

// What single entries take beside their texts, with what maps need for them.
const (
	mapBytes   = 48
	jobBytes   = int(unsafe.Sizeof(job{})) + 4*mapBytes
	rankBytes  = int(unsafe.Sizeof(rank{})) + mapBytes
	commBytes  = int(unsafe.Sizeof(comm{})+unsafe.Sizeof(commKey{})) + 2*mapBytes
	nodeBytes  = int(unsafe.Sizeof(node{})) + 2*mapBytes
	entryBytes = int(unsafe.Sizeof(entry{}))
	spanBytes  = int(unsafe.Sizeof(span{})) + 2*mapBytes
)

// maxOpenBytes bounds what spans hold: the ranks of 32 communicators of 131,072, and no less
// than MaxEpisodes that name 64.
const maxOpenBytes = 32 << 20

func (r *rank) texts() int { return len(r.hostID) + len(r.hostName) + len(r.hwid) + len(r.nccl) }

func (c *comm) size() int { return c.key.bytes() + len(c.name) }

// bytes is what a communicator takes that has no name.
func (k commKey) bytes() int { return commBytes + len(k.id) + k.size*int(unsafe.Sizeof(&rank{})) }

func (n *node) texts() int { return len(n.key) + len(n.id) + len(n.name) }

func (e *entry) size() int {
	return entryBytes + len(e.unit) + len(e.model) + len(e.version) + len(e.class)
}

func sizeOf(entries []entry) (bytes int) {
	for i := range entries {
		bytes += entries[i].size()
	}
	return bytes
}

// size estimates what a span takes: its ranks, and the ranks and hosts that its judgement names.
func (s *span) size() int {
	n := spanBytes + len(s.ranks)*int(unsafe.Sizeof(s.ranks[0])) + len(s.judgement.Minority)*int(unsafe.Sizeof(s.ranks[0]))
	for _, h := range s.judgement.MinorityHosts {
		n += len(h)
	}
	return n
}
