// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// ThisMachine returns a scrubber that knows the names of the machine it runs on: of the
// host, whole and up to the first dot, of its domains, its system and its boot, its
// addresses, the user and the home folder.
func ThisMachine() *Scrubber {
	host, _ := os.Hostname() // what cannot be found out here is in no text either
	short, domain, _ := strings.Cut(host, ".")
	s := New(host, short, domain, file("/etc/machine-id"), file("/proc/sys/kernel/random/boot_id"))
	for _, name := range append(domains(file("/etc/resolv.conf")), addresses()...) {
		s.Learn(name)
	}
	if me, err := user.Current(); err == nil {
		s.Learn(me.Username)
	}
	if home, err := os.UserHomeDir(); err == nil {
		s.LearnFolder(home)
	}
	return s
}

// system are folders that all machines have.
var system = []string{"/usr", "/bin", "/opt", "/tmp", "/var", "/dev", "/run", "/etc", "/lib", "/root"}

// LearnFolder has the path of a folder replaced, unless it is one that all machines have.
func (s *Scrubber) LearnFolder(path string) {
	if path = filepath.Clean(path); telling(path) {
		s.Learn(path)
	}
}

// telling reports whether a path is one that not all machines have.
func telling(path string) bool {
	for _, dir := range system {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return false
		}
	}
	return strings.HasPrefix(path, "/") && strings.Count(path, "/") > 1
}

func file(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// domains returns those in which a resolver looks.
func domains(resolver string) (all []string) {
	for line := range strings.Lines(resolver) {
		if words := strings.Fields(line); len(words) > 1 && (words[0] == "search" || words[0] == "domain") {
			all = append(all, words[1:]...)
		}
	}
	return all
}

// addresses returns those of the machine that others do not have.
func addresses() (all []string) {
	found, _ := net.InterfaceAddrs()
	for _, a := range found {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() {
			all = append(all, ip.IP.String())
		}
	}
	return all
}
