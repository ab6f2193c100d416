// SPDX-License-Identifier: Apache-2.0

package desync

// fewGroups is how many communicators of one id are looked at one by one: nearly always there is
// one. Where each rank of a job lists other members under it, there are as many as ranks.
const fewGroups = 16

// groupsByID finds communicators by their id.
type groupsByID struct {
	ids     map[string][]int32
	members map[string]map[int64][]int32 // of ids with more than a few groups
}

func newGroupsByID() groupsByID {
	return groupsByID{ids: map[string][]int32{}, members: map[string]map[int64][]int32{}}
}

func (b *groupsByID) add(id string, i int32) {
	b.ids[id] = append(b.ids[id], i)
	delete(b.members, id)
}

// of lists the groups of an id in which a rank may be; where they are many, in which it is.
func (b *groupsByID) of(all []*group, id string, rank int64) []int32 {
	list := b.ids[id]
	if len(list) <= fewGroups {
		return list
	}
	of := b.members[id]
	if of == nil {
		of = map[int64][]int32{}
		for _, i := range list {
			for _, m := range all[i].sorted {
				of[m] = append(of[m], i)
			}
		}
		b.members[id] = of
	}
	return of[rank]
}
