// SPDX-License-Identifier: Apache-2.0

package judge

// placeInfo is what comparison needs of a place.
type placeInfo struct {
	known    bool
	kind     Kind
	unit     int32 // the same work: key, name and shape
	group    int32 // the same purpose: key
	name     int32 // the same purpose by the same means: key and name
	exact    bool  // its shape is known
	backward bool  // of the backward pass
}

// placeTable numbers what places have in common. It grows with the places of the job,
// which are bounded by the configuration.
type placeTable struct {
	of     func(PlaceID) Place
	infos  []placeInfo
	units  map[[3]string]int32
	names  map[[2]string]int32
	groups map[string]int32
	limit  int
}

func newPlaceTable(of func(PlaceID) Place, limit int) placeTable {
	return placeTable{
		of: of, limit: limit,
		units: map[[3]string]int32{}, names: map[[2]string]int32{}, groups: map[string]int32{},
	}
}

// info returns what is known of a place; false beyond the limit.
func (t *placeTable) info(id PlaceID) (*placeInfo, bool) {
	if int64(id) >= int64(t.limit) {
		return nil, false
	}
	if int(id) >= len(t.infos) {
		t.infos = append(t.infos, make([]placeInfo, int(id)+1-len(t.infos))...)
	}
	in := &t.infos[id]
	if !in.known {
		p := t.of(id)
		name := p.Name
		if name == "" {
			name = p.Key
		}
		*in = placeInfo{
			known: true, kind: min(p.Kind, Host), exact: p.Shape != "", backward: p.Backward,
			unit:  number(t.units, [3]string{p.Key, name, p.Shape}),
			name:  number(t.names, [2]string{p.Key, name}),
			group: number(t.groups, p.Key),
		}
	}
	return in, true
}

func number[K comparable](of map[K]int32, k K) int32 {
	n, ok := of[k]
	if !ok {
		n = int32(len(of))
		of[k] = n
	}
	return n
}
