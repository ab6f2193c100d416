// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// frozen reports whether the kernel holds a process with its cgroup, by the hierarchies that are
// mounted here. Where none can be read, it is not known to be.
func frozen(proc string, pid int) bool {
	groups, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	var mounts []cgroupMount
	for line := range strings.SplitSeq(string(groups), "\n") {
		id, rest, _ := strings.Cut(line, ":")
		controllers, path, ok := strings.Cut(rest, ":")
		unified := id == "0" && controllers == ""
		if !ok || !unified && !slices.Contains(strings.Split(controllers, ","), "freezer") {
			continue
		}
		if mounts == nil {
			mounts = cgroupMounts(proc)
		}
		for _, m := range mounts {
			if at, ok := m.below(path); ok && m.unified == unified && m.frozen(at) {
				return true
			}
		}
	}
	return false
}

// cgroupMount is where a hierarchy of cgroups is mounted, from its directory root on.
type cgroupMount struct {
	root, point string
	unified     bool // of version 2
}

// below returns where a cgroup lies below the mount point.
func (m *cgroupMount) below(path string) (string, bool) {
	path = filepath.Clean("/" + path)
	if m.root == "/" {
		return filepath.Join(m.point, path), true
	}
	rest, ok := strings.CutPrefix(path, m.root)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return filepath.Join(m.point, rest), true
}

func (m *cgroupMount) frozen(at string) bool {
	if !m.unified {
		state, err := os.ReadFile(filepath.Join(at, "freezer.state"))
		return err == nil && string(bytes.TrimSpace(state)) == "FROZEN"
	}
	events, err := os.ReadFile(filepath.Join(at, "cgroup.events"))
	if err != nil {
		return false
	}
	return slices.Contains(strings.Split(string(events), "\n"), "frozen 1")
}

// cgroupMounts lists the mounts of hierarchies that can freeze.
func cgroupMounts(proc string) (out []cgroupMount) {
	file, err := os.Open(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read from
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		mount, what, ok := strings.Cut(lines.Text(), " - ")
		from, kind := strings.Fields(mount), strings.Fields(what)
		if !ok || len(from) < 5 || len(kind) < 3 {
			continue
		}
		m := cgroupMount{root: unescaped(from[3]), point: unescaped(from[4]), unified: kind[0] == "cgroup2"}
		if m.unified || kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "freezer") {
			out = append(out, m)
		}
	}
	return out
}

// unescaped replaces what mountinfo writes for spaces and the like.
func unescaped(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
