// SPDX-License-Identifier: Apache-2.0

// Package hostid says who this host is, as the names of its clocks have it. All
// components of one host must find the same: the clocks of spans, of probes and of
// time services are then one clock.
package hostid

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// variable names the host to whoever makes rings, too.
	variable = "LOCKSTEP_HOST_ID"
	// machineID holds the host's id on Linux.
	machineID = "/etc/machine-id"
)

// Host is this host in one of its boots.
type Host struct {
	Name string // as the system has it; may be empty
	ID   string
	Boot string
}

// Find returns this host. Its id is the configured one, else that of the
// environment's LOCKSTEP_HOST_ID, of /etc/machine-id, else the host's name.
func Find(configured string) (Host, error) {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	return find(configured, name, ring.BootID(), machineID)
}

func find(configured, name, boot, file string) (Host, error) {
	h := Host{Name: name, Boot: boot}
	for _, id := range []string{configured, os.Getenv(variable), firstLine(file), name} {
		if id != "" {
			h.ID = id
			break
		}
	}
	switch {
	case h.ID == "":
		return h, errors.New("find id of host: the system tells none; want it as host_id")
	case h.Boot == "":
		return h, errors.New("find id of boot: the system tells none")
	}
	if err := Check(h.ID); err != nil {
		return h, fmt.Errorf("find id of host: %w", err)
	}
	return h, nil
}

// Check says whether an id can be part of a clock's name.
func Check(id string) error {
	for _, r := range id {
		if r <= ' ' || r > '~' || r == '/' {
			return fmt.Errorf("got %q; want visible ASCII without a slash", id)
		}
	}
	return nil
}

// Raw is the id of the host's CLOCK_MONOTONIC_RAW.
func (h Host) Raw() string { return "host:" + h.ID + "/" + h.Boot + "/raw" }

// Realtime is the id of the host's CLOCK_REALTIME.
func (h Host) Realtime() string { return "host:" + h.ID + "/" + h.Boot + "/realtime" }

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
