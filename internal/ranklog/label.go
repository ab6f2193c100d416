// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"strconv"
)

// label is what a launcher or a collector of logs puts in front of the lines of one process.
type label struct {
	text string
	rank int64 // that it may say; -1: none
}

// labelled parts a line into the label and the rest. Times in front of both are left out.
func labelled(line []byte) (label, []byte) {
	if l, rest, ok := ofSyslog(line); ok {
		return l, rest
	}
	line = withoutTime(withoutColour(line))
	for _, read := range []func([]byte) (label, []byte, bool){ofMPI, ofElastic, ofSrun, ofRay, ofPod} {
		if l, rest, ok := read(line); ok {
			return l, withoutTime(rest)
		}
	}
	return label{rank: -1}, line
}

// ofSyslog reads "2026-11-16T10:00:00+0000 node1 python3[4711]: " and "Nov 16 10:00:00 node1 python3[4711]: " of
// journalctl and syslog.
func ofSyslog(s []byte) (label, []byte, bool) {
	if bytes.IndexByte(s[:min(len(s), maxLabel)], '[') < 0 {
		return label{}, nil, false
	}
	rest := withoutTime(s)
	if len(rest) == len(s) {
		const clock = len("Nov 16 10:00:00")
		if len(s) <= clock || s[3] != ' ' || s[6] != ' ' || s[9] != ':' || s[12] != ':' || s[0] < 'A' || s[0] > 'S' {
			return label{}, nil, false
		}
		end := bytes.IndexByte(s[clock:], ' ')
		if end < 0 {
			return label{}, nil, false
		}
		rest = s[clock+end+1:]
	}
	host := bytes.IndexByte(rest[:min(len(rest), maxLabel)], ' ')
	if host <= 0 {
		return label{}, nil, false
	}
	open := bytes.IndexByte(rest[:min(len(rest), maxLabel)], '[')
	if open <= host+1 || bytes.IndexByte(rest[host+1:open], ' ') >= 0 {
		return label{}, nil, false
	}
	if _, n, ok := number(rest[open+1:]); ok && bytes.HasPrefix(rest[open+1+n:], []byte("]: ")) {
		end := open + 1 + n + len("]: ")
		return label{string(rest[:end-2]), -1}, rest[end:], true
	}
	return label{}, nil, false
}

// ofMPI reads "[1,3]<stderr>:": job 1, rank 3.
func ofMPI(s []byte) (label, []byte, bool) {
	if len(s) == 0 || s[0] != '[' {
		return label{}, nil, false
	}
	_, n, ok := number(s[1:])
	if !ok || n+1 >= len(s) || s[n+1] != ',' {
		return label{}, nil, false
	}
	rank, m, ok := number(s[n+2:])
	end := n + 2 + m
	if !ok || end >= len(s) || s[end] != ']' {
		return label{}, nil, false
	}
	rest := s[end+1:]
	if !bytes.HasPrefix(rest, []byte("<std")) {
		return label{}, nil, false
	}
	i := bytes.Index(rest, []byte(">:"))
	if i < 0 || i > len("<stderr") {
		return label{}, nil, false
	}
	return label{"mpi " + strconv.FormatInt(rank, 10), rank}, rest[i+2:], true
}

// ofElastic reads "[default3]:" of torchrun --tee: a role, and the rank in the node.
func ofElastic(s []byte) (label, []byte, bool) {
	if !bytes.HasPrefix(s, []byte("[default")) {
		return label{}, nil, false
	}
	at := len("[default")
	rank, n, ok := number(s[at:])
	if !ok || rank < 0 || rank > maxRank || !bytes.HasPrefix(s[at+n:], []byte("]:")) {
		return label{}, nil, false
	}
	return label{"local " + strconv.FormatInt(rank, 10), rank}, s[at+n+2:], true
}

// ofSrun reads "3: " and " 12: " of srun --label.
func ofSrun(s []byte) (label, []byte, bool) {
	trimmed := bytes.TrimLeft(s, " ")
	rank, n, ok := number(trimmed)
	if !ok || rank < 0 || rank > maxRank || len(s)-len(trimmed) > 8 || !bytes.HasPrefix(trimmed[n:], []byte(": ")) {
		return label{}, nil, false
	}
	return label{"task " + strconv.FormatInt(rank, 10), rank}, trimmed[n+2:], true
}

// ofRay reads "(RayTrainWorker pid=12, ip=10.0.0.1) " and "(Worker[rank=3] pid=12) ".
func ofRay(s []byte) (label, []byte, bool) {
	if len(s) == 0 || s[0] != '(' {
		return label{}, nil, false
	}
	end := bytes.IndexByte(s[:min(len(s), maxLabel)], ')')
	if end < 0 || !bytes.Contains(s[:end], []byte("pid=")) {
		return label{}, nil, false
	}
	l := label{string(s[1:end]), -1}
	if rank, ok := after(s[:end], "[rank="); ok {
		l.rank = rank
	}
	return l, bytes.TrimPrefix(withoutColour(s[end+1:]), []byte(" ")), true
}

// withoutColour drops what a clipboard leaves of a colour: "[36m" without its escape character.
func withoutColour(s []byte) []byte {
	if len(s) < len("[0m") || s[0] != '[' {
		return s
	}
	i := 1
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == ';') {
		i++
	}
	if i == 1 || i == len(s) || s[i] != 'm' {
		return s
	}
	return s[i+1:]
}

// ofPod reads "[pod/trainer-3/pytorch] " of kubectl logs --prefix, and "trainer-3  | " of docker
// compose.
func ofPod(s []byte) (label, []byte, bool) {
	if bytes.HasPrefix(s, []byte("[pod/")) {
		if end := bytes.IndexByte(s[:min(len(s), maxLabel)], ']'); end > 0 {
			return label{string(s[1:end]), -1}, bytes.TrimPrefix(s[end+1:], []byte(" ")), true
		}
	}
	if i := bytes.Index(s[:min(len(s), maxLabel)], []byte(" | ")); i > 0 {
		if name := bytes.TrimRight(s[:i], " "); isName(name) {
			return label{string(name), -1}, s[i+3:], true
		}
	}
	return label{}, nil, false
}

// isName reports whether a text is the name of one of several containers: letters, and a number at
// the end. Tables that programs print have other texts in front of a bar.
func isName(s []byte) bool {
	letter := false
	for _, c := range s {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letter = true
		case c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	last := len(s) - 1
	return letter && s[last] >= '0' && s[last] <= '9'
}

// maxLabel bounds the length of a label, bytes.
const maxLabel = 256

// withoutTime drops a time that a collector of logs puts in front: "2026-11-16T10:00:00.1Z ",
// "2026-11-16 10:00:00,123 ", and that of containerd with its stream, "... stderr F ".
func withoutTime(s []byte) []byte {
	const date = len("2026-11-16")
	if len(s) < date+2 || s[4] != '-' || s[7] != '-' || s[0] != '2' || s[date] != 'T' && s[date] != ' ' {
		return s
	}
	i := date + 1
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || bytes.IndexByte([]byte(":.,Z+-"), s[i]) >= 0) {
		i++
	}
	if i == date+1 || i >= len(s) || s[i] != ' ' {
		return s
	}
	s = s[i+1:]
	for _, stream := range []string{"stderr F ", "stdout F ", "stderr P ", "stdout P "} {
		if bytes.HasPrefix(s, []byte(stream)) {
			return s[len(stream):]
		}
	}
	return s
}

// segments calls do for what each rank wrote of a line: PyTorch begins its lines with
// "[rank3]:", and two ranks that write to one file may leave out the end of a line. In front of
// the first such mark the rank is -1.
func segments(line []byte, do func(rank int64, text []byte)) {
	rank, from := int64(-1), 0
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte("[rank"))
		if i < 0 {
			break
		}
		begin := at + i
		at = begin + len("[rank")
		n, length, ok := number(line[at:])
		if !ok || n < 0 || n > maxRank || !bytes.HasPrefix(line[at+length:], []byte("]:")) {
			continue
		}
		if begin > from {
			do(rank, line[from:begin])
		}
		at += length + 2
		rank, from = n, at
	}
	do(rank, line[from:])
}

// maxRank is the greatest number that is taken for a rank.
const maxRank = 1<<20 - 1
