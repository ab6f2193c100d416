// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"reflect"
	"strings"
	"unicode"
)

// addCounters adds the integers of a struct of counters to sums by name:
// sender.mismatched.
func addCounters(to map[string]int64, prefix string, counters any) {
	v := reflect.ValueOf(counters)
	for i := range v.NumField() {
		name := prefix + snake(v.Type().Field(i).Name)
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			to[name] += f.Int()
		case reflect.Array:
			for kind := 1; kind < f.Len(); kind++ {
				to[name+"."+stampName(uint8(kind))] += f.Index(kind).Int()
			}
		}
	}
}

// snake writes FieldName as field_name.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// counters are those of all parts of the node together.
func (n *Node) counters() map[string]int64 {
	sum := maps.Clone(n.retired)
	for _, e := range n.ends {
		e.answers.mu.Lock()
		addCounters(sum, "reflector.", e.answers.reflector.Counters())
		e.answers.mu.Unlock()
		addCounters(sum, "socket.", e.answers.conn.Counters())
		for _, k := range e.sockets {
			addCounters(sum, "socket.", k.conn.Counters())
		}
	}
	for _, t := range n.targets {
		for i, k := range t.sockets {
			k.mu.Lock()
			addCounters(sum, "sender.", t.sessions[i].sender.Counters())
			k.mu.Unlock()
		}
	}
	addCounters(sum, "pairs.", n.pairs.Counters())
	sum["node.probes_skipped"] += n.pacer.lost()
	n.count.add(sum)
	return sum
}
