// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"strconv"
	"strings"
)

const (
	copyName = "copy"
	setName  = "set"
	// ringName is how many bytes of a name a ring holds.
	ringName = 55
	// sentinelName is the kernel that begins each window. A profiler that loses the
	// first kernels of a session loses these.
	sentinelName = "spin_kernel"
)

// nestedName returns what our client makes of a kernel's name, from the name that
// torch.profiler writes: the nested name without the type that is returned, without
// arguments of templates and functions and without anonymous namespaces, as long as
// a ring holds it.
func nestedName(shown string) string {
	if rest, ok := strings.CutPrefix(shown, "_ZN"); ok {
		return cutName(mangledName(rest)) // too long for torch.profiler to demangle
	}
	shown = strings.ReplaceAll(shown, "(anonymous namespace)::", "")
	var out strings.Builder
	depth := 0
scan:
	for _, c := range shown {
		switch {
		case c == '<':
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth > 0:
		case c == '(':
			break scan
		default:
			out.WriteRune(c)
		}
	}
	name := strings.TrimSpace(out.String())
	name = name[strings.LastIndexByte(name, ' ')+1:]
	return cutName(name)
}

// mangledName returns the parts of a mangled name up to the first arguments.
func mangledName(rest string) string {
	var parts []string
	for rest != "" {
		if after, ok := strings.CutPrefix(rest, "St"); ok {
			parts, rest = append(parts, "std"), after
			continue
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || digits+n > len(rest) {
			break
		}
		if part := rest[digits : digits+n]; !strings.HasPrefix(part, "_GLOBAL__N") {
			parts = append(parts, part)
		}
		rest = rest[digits+n:]
	}
	return strings.Join(parts, "::")
}

// cutName cuts a name as a ring does, between characters.
func cutName(name string) string {
	if len(name) <= ringName {
		return name
	}
	return strings.ToValidUTF8(name[:ringName], "")
}

func isSentinel(name string) bool { return strings.HasSuffix(name, sentinelName) }
