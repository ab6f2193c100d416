// SPDX-License-Identifier: Apache-2.0

package timeline

import "strings"

// name is what the parts of a clock id say.
type name struct {
	host, boot string // empty where the id names no host
	raw        bool   // counts since boot, and nobody sets it
	realtime   bool   // shows Unix time
	daemon     bool   // what a time service follows: no clock that anybody can read
}

// parse reads ids such as host:<id>/<boot>/raw; a host's id may have slashes.
func parse(id string) name {
	if strings.HasPrefix(id, "utc:") {
		return name{daemon: true}
	}
	n := name{raw: strings.HasSuffix(id, "/raw"), realtime: strings.HasSuffix(id, "/realtime")}
	rest, isHost := strings.CutPrefix(id, "host:")
	if !isHost {
		return n
	}
	end := strings.LastIndexByte(rest, '/')
	if end < 0 {
		return n
	}
	start := strings.LastIndexByte(rest[:end], '/')
	if start < 0 {
		return n
	}
	n.host, n.boot = rest[:start], rest[start+1:end]
	return n
}
