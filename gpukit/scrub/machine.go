// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"net"
	"os"
	"strings"
)

// ThisMachine returns a scrubber that knows the names of the machine it runs on: of the
// host, whole and up to the first dot, of its system and its boot, its addresses, and the
// user's home folder.
func ThisMachine() *Scrubber {
	host, _ := os.Hostname() // what is not to be had is not known to others
	short, _, _ := strings.Cut(host, ".")
	names := []string{host, short, file("/etc/machine-id"), file("/proc/sys/kernel/random/boot_id")}
	if home, _ := os.UserHomeDir(); strings.Count(home, "/") > 1 {
		names = append(names, home)
	}
	return New(append(names, addresses()...)...)
}

func file(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
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
