package timeline

import "strings"

const (
	// maxName bounds the names of clocks and hosts, in bytes. Those of OTLP have no limit.
	maxName = 256
	// maxEpoch bounds what the name of a timeline has beside its clock's.
	maxEpoch = 16
)

// name is what the parts of a clock id say.
type name struct {
	host, boot string // empty where the id names no host
	raw        bool   // counts since boot and is never stepped
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
	if nic, ok := strings.CutPrefix(id, "nic:"); ok {
		n.host, _, _ = strings.Cut(nic, "/")
		return n
	}
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
