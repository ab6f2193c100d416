// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// collected is what a collector of logs keeps of one line: the text, and where it is from.
type collected struct {
	text    []byte
	from    string // host, pod and process, as far as they are written
	time    string // as written
	stderr  bool
	partial bool // it goes on in the next one
}

var (
	// messageKeys are the names of the text of a line, in the order in which they are looked for.
	messageKeys = []string{"log", "message", "line", "_raw", "@message", "textpayload", "msg", "body", "content"}
	// timeKeys are the names of its time.
	timeKeys = []string{"__realtime_timestamp", "timestamp", "tsns", "@timestamp", "_time", "time", "ts", "date"}
	// hostKeys, podKeys and pidKeys are the names of where it is from.
	hostKeys = []string{"_hostname", "host", "hostname", "node_name", "nodename", "node", "instance"}
	podKeys  = []string{"pod_name", "pod", "container_name", "syslog_identifier"}
	pidKeys  = []string{"_pid", "pid"}
	// companions are the names of which a collector writes one beside the text. A program that writes JSON
	// has a message and a time, too.
	companions = slices.Concat([]string{"stream", "kubernetes", "labels", "fields", "resource", "logtag", "__cursor", "source_type", "insertid", "ingestiontime"}, timeKeys, hostKeys, podKeys)
)

// members are the values of an object of JSON, by their names in lower case without what is in front of a dot.
type members map[string]json.RawMessage

func membersOf(raw map[string]json.RawMessage) members {
	out := members{}
	for name, value := range raw {
		name = strings.ToLower(name)
		out[name[strings.LastIndexByte(name, '.')+1:]] = value
	}
	return out
}

// text is a member that is a string, a number or an array of bytes, as journald writes it.
func (m members) text(names []string) (string, bool) {
	for _, name := range names {
		raw, ok := m[name]
		if !ok {
			continue
		}
		var text string
		var bytes []uint16 // as numbers: encoding/json takes []byte for base64
		var n json.Number
		switch {
		case json.Unmarshal(raw, &text) == nil:
			return text, true
		case json.Unmarshal(raw, &bytes) == nil:
			out := make([]byte, len(bytes))
			for i, b := range bytes {
				out[i] = byte(b)
			}
			return string(out), true
		case json.Unmarshal(raw, &n) == nil:
			return n.String(), true
		}
	}
	return "", false
}

// inner are the members of the objects of some members.
func (m members) inner() []members {
	out := []members{m}
	for _, name := range []string{"kubernetes", "labels", "fields", "stream", "resource", "attributes"} {
		var raw map[string]json.RawMessage
		if json.Unmarshal(m[name], &raw) == nil && raw != nil {
			of := membersOf(raw)
			out = append(out, of)
			if json.Unmarshal(of["labels"], &raw) == nil && raw != nil { // Google's resource
				out = append(out, membersOf(raw))
			}
		}
	}
	return out
}

// from is where a line is from: "node-3/trainer-1/4711".
func (m members) from() string {
	var parts []string
	all := m.inner()
	for _, names := range [][]string{hostKeys, podKeys, pidKeys} {
		for _, of := range all {
			if text, ok := of.text(names); ok && text != "" {
				parts = append(parts, text)
				break
			}
		}
	}
	from := strings.Join(parts, "/")
	return from[:min(len(from), maxLabel)]
}

// collectedOf reads a line that a collector of logs wrote as an object of JSON.
func collectedOf(line []byte) (c collected, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return c, false
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(line, &raw) != nil {
		return c, false
	}
	return ofMembers(membersOf(raw))
}

func ofMembers(m members) (c collected, ok bool) {
	text, ok := m.text(messageKeys)
	if !ok || !slices.ContainsFunc(companions, func(name string) bool { _, has := m[name]; return has }) {
		return c, false
	}
	for name := range m {
		if hasStepWord([]byte(name)) { // it is the program's own object
			return c, false
		}
	}
	c.text, c.from = []byte(text), m.from()
	c.time, _ = m.text(timeKeys)
	stream, _ := m.text([]string{"stream"})
	tag, _ := m.text([]string{"logtag", "_p", "container_partial_message"})
	c.stderr, c.partial = stream == "stderr", tag == "P" || tag == "true" || m.docker() && !strings.HasSuffix(text, "\n")
	return c, true
}

// docker reports whether an object has what Docker's json-file driver writes alone.
func (m members) docker() bool {
	for name := range m {
		if !slices.Contains([]string{"log", "stream", "time", "attrs"}, name) {
			return false
		}
	}
	return true
}

// IsCollected reports whether content begins as objects of JSON in which a collector of logs keeps lines.
func IsCollected(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) {
		return false
	}
	first, _, whole := bytes.Cut(head, []byte("\n"))
	if _, ok := collectedOf(first); ok || isLoki(head) {
		return true
	}
	low := bytes.ToLower(first)
	has := func(name string) bool { return bytes.Contains(low, []byte(`"`+name+`"`)) }
	return !whole && slices.ContainsFunc(messageKeys, has) && slices.ContainsFunc(companions, has) // it is cut
}
