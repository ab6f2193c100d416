// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// device is a data source of ours that a machine may have.
type device struct {
	name string // of the check
	what string
	find func(ctx context.Context) []string
}

// maxNamed bounds how many devices a text names.
const maxNamed = 8

// devices reports which data sources the machine has. They are facts: none is wrong.
func (n *node) devices(ctx context.Context) {
	for _, d := range []device{
		{"device-rdma", "RDMA devices (/sys/class/infiniband)", func(context.Context) []string { return described("/sys/class/infiniband/*", "board_id", "fw_ver") }},
		{"device-ptp-clock", "PTP hardware clocks (/sys/class/ptp)", func(context.Context) []string { return described("/sys/class/ptp/ptp*", "clock_name") }},
		{"device-network-stamps", "network devices with hardware time stamps", stamping},
		{"device-nvswitch", "NVSwitches (/dev/nvidia-nvswitch*)", func(context.Context) []string { return described("/dev/nvidia-nvswitch[0-9]*") }},
		{"fabric-manager", "a fabric manager (nv-fabricmanager)", func(context.Context) []string { return onPath("nv-fabricmanager") }},
		{"fabric-state", "a GPU in a fabric (nvidia-smi -q -x)", func(context.Context) []string { return fabric(n.xml) }},
		{"nccl-ras", "a process of NCCL that answers at " + rasAddress, listening},
		{"clock-daemon", "chronyd or ptp4l, whose answers bound the clock", func(context.Context) []string { return onPath("chronyd", "ptp4l") }},
	} {
		found := d.find(ctx)
		if len(found) == 0 {
			n.p.Add(d.name, report.NotShown, "this machine has none of: "+d.what)
			continue
		}
		n.p.Add(d.name, report.Noted, fmt.Sprintf("%s: %s", d.what, few(found, maxNamed)),
			report.Figure{Name: "found", Value: float64(len(found)), Unit: "1"})
	}
}

// described returns the base names that match, with the contents of files below each.
func described(pattern string, files ...string) (out []string) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil // the patterns are constants
	}
	for _, path := range paths {
		words := []string{filepath.Base(path)}
		for _, name := range files {
			if b, err := os.ReadFile(filepath.Join(path, name)); err == nil {
				words = append(words, strings.TrimSpace(string(b)))
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func onPath(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

// fabric returns the state of the first GPU's fabric, where it has one.
func fabric(xml []byte) []string {
	_, rest, ok := strings.Cut(string(xml), "<fabric>")
	if !ok {
		return nil
	}
	_, rest, _ = strings.Cut(rest, "<state>")
	state, _, ok := strings.Cut(rest, "</state>")
	if !ok || len(state) > 40 || slices.Contains([]string{"", "N/A", "Not Supported"}, state) {
		return nil
	}
	return []string{state}
}

// rasAddress is where NCCL answers for its RAS unless NCCL_RAS_ADDR names another address.
const rasAddress = "localhost:28028"

// listening returns the address where a job of NCCL listens now.
func listening(ctx context.Context) []string {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", rasAddress)
	if err != nil {
		return nil
	}
	_ = c.Close() // nothing was asked
	return []string{rasAddress}
}
