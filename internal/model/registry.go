// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Group is one communicator as all sources together know it.
type Group struct {
	ID          string   // the id under which operations are matched
	Hashes      []string // further ids of the same group
	Name        string   // process-group name
	Description string
	Ranks       []int64 // ordered global ranks; empty where unknown
	Digest      string  // RanksDigest of Ranks
}

// Registry joins what different sources say of one communicator, and serves
// communicator rank to global rank. It is not safe for concurrent use.
type Registry struct {
	limit    int
	groups   map[string]*Group // by every id
	overflow int64
}

// DefaultRegistryLimit bounds the ids that a registry holds. A large
// mixture-of-experts job has some tens of groups a rank and some thousands in
// all; 65,536 leaves a factor of ten.
const DefaultRegistryLimit = 65536

// NewRegistry returns an empty registry of at most limit ids.
func NewRegistry(limit int) *Registry {
	return &Registry{limit: limit, groups: map[string]*Group{}}
}

// Add merges what one source knows of a group and returns the result. A group
// beyond the limit is returned unregistered and counted.
func (r *Registry) Add(g Group) *Group {
	if len(g.Ranks) > 0 {
		g.Digest = RanksDigest(g.Ranks)
	}
	var known *Group
	for _, id := range append([]string{g.ID}, g.Hashes...) {
		switch other := r.groups[id]; {
		case other == nil || other == known:
		case known == nil:
			known = other
		default: // two groups known apart turn out to be one
			known.merge(*other)
		}
	}
	if known == nil {
		known = &g
	} else {
		known.merge(g)
	}
	for _, id := range append([]string{known.ID}, known.Hashes...) {
		r.index(id, known)
	}
	return known
}

func (r *Registry) index(id string, g *Group) {
	if _, ok := r.groups[id]; !ok && len(r.groups) >= r.limit {
		r.overflow++
		return
	}
	r.groups[id] = g
}

func (g *Group) merge(o Group) {
	for _, id := range append([]string{o.ID}, o.Hashes...) {
		if id != g.ID && !slices.Contains(g.Hashes, id) {
			g.Hashes = append(g.Hashes, id)
		}
	}
	if g.Name == "" {
		g.Name = o.Name
	}
	if g.Description == "" {
		g.Description = o.Description
	}
	if len(g.Ranks) == 0 {
		g.Ranks, g.Digest = o.Ranks, o.Digest
	}
}

// Get returns the group known under id, or nil.
func (r *Registry) Get(id string) *Group { return r.groups[id] }

// GlobalRank returns the global rank of a communicator rank; unknown where the
// group or its ranks are.
func (r *Registry) GlobalRank(id string, local int64) Optional[int64] {
	g := r.groups[id]
	if g == nil || local < 0 || local >= int64(len(g.Ranks)) {
		return Optional[int64]{}
	}
	return Some(g.Ranks[local])
}

// Overflow returns how many ids did not fit.
func (r *Registry) Overflow() int64 { return r.overflow }
