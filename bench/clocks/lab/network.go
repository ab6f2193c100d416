// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// prefix begins the name of every namespace of a lab; the process's number follows.
const prefix = "lslab-"

// network is a switch and nodes, each a network namespace of its own.
type network struct {
	names []string // of the nodes' namespaces
	hub   string
}

// newNetwork joins n nodes by a bridge. What was made is removed where that fails.
func newNetwork(ctx context.Context, n int) (*network, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("make network namespaces: got user %d; want root", os.Geteuid())
	}
	if err := removeLeft(ctx); err != nil {
		return nil, err
	}
	w := &network{hub: fmt.Sprintf("%s%d-hub", prefix, os.Getpid())}
	for i := range n {
		w.names = append(w.names, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), i))
	}
	if err := w.build(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *network) build(ctx context.Context) error {
	all := [][]string{
		{"netns", "add", w.hub},
		// Without spanning tree a port forwards at once; without snooping multicast
		// reaches all.
		{"-n", w.hub, "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping", "0"},
		{"-n", w.hub, "link", "set", "br0", "up"},
	}
	for i, name := range w.names {
		port := "port" + strconv.Itoa(i)
		all = append(all,
			[]string{"netns", "add", name},
			[]string{"link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", w.hub},
			[]string{"-n", w.hub, "link", "set", port, "master", "br0", "up"},
			[]string{"-n", name, "addr", "add", w.addr(i).String() + "/24", "dev", "eth0"},
			[]string{"-n", name, "link", "set", "lo", "up"},
			[]string{"-n", name, "link", "set", "eth0", "up"},
		)
	}
	for _, args := range all {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// addr is the address of a node.
func (w *network) addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 88, 0, byte(i + 1)}) }

// close removes all, also where the lab was interrupted.
func (w *network) close() {
	for _, name := range append(w.names, w.hub) {
		_ = ip(context.Background(), "netns", "del", name) // the next lab removes what is left
	}
}

// removeLeft removes the namespaces of labs that were killed.
func removeLeft(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return fmt.Errorf("list network namespaces: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		owner, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		owner, _, _ = strings.Cut(owner, "-")
		if _, err := os.Readlink("/proc/" + owner + "/exe"); err == nil {
			continue // a lab that runs
		}
		if err := ip(ctx, "netns", "del", name); err != nil {
			return err
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
