// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
)

// namespaces makes two network namespaces joined by a cable, with 10.231.0.1 and
// 10.231.0.2, and returns their names.
func namespaces(t *testing.T) [2]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces, which only root may")
	}
	ip := func(args ...string) error {
		out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
		return nil
	}
	names := [2]string{fmt.Sprintf("probe%d-0", os.Getpid()), fmt.Sprintf("probe%d-1", os.Getpid())}
	for _, n := range names {
		if err := ip("netns", "add", n); err != nil {
			t.Skipf("makes network namespaces, which is not permitted: %v", err)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n).Run() })
	}
	require.NoError(t, ip("-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", names[1]))
	for i, n := range names {
		require.NoError(t, ip("-n", n, "address", "add", fmt.Sprintf("10.231.0.%d/24", i+1), "dev", "v0"))
		require.NoError(t, ip("-n", n, "link", "set", "v0", "up"))
	}
	return names
}

// within runs f in a network namespace. Sockets opened there stay there.
func within(t *testing.T, namespace string, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	enter := func(path string) func() {
		file, err := os.Open(path)
		require.NoError(t, err)
		return func() {
			require.NoError(t, unix.Setns(int(file.Fd()), unix.CLONE_NEWNET))
			require.NoError(t, file.Close())
		}
	}
	back := enter("/proc/thread-self/ns/net")
	defer back()
	enter("/run/netns/" + namespace)()
	f()
}

func TestNodesMeasureEachOtherOverACable(t *testing.T) {
	netstamptest.AwaitStamps(t)
	names := namespaces(t)
	list := &members{}
	nodes := [2]*testNode{newTestNode(0, list), newTestNode(1, list)}
	var all []mesh.Member
	for i, n := range nodes {
		n.cfg.Locals = []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("10.231.0.%d:18862", i+1))}
		n.cfg.Window = 500 * time.Millisecond
		all = append(all, n.member())
	}
	list.set(all...)
	for i, n := range nodes {
		within(t, names[i], func() { n.start(t) })
	}
	nodes[0].some(t, "an estimate and its delays", func(o Outcome) bool {
		return estimated(o, "host:b/1/raw") && len(o.Paths) > 0 && len(o.Paths[0].Delays) > 0
	})
	checked := 0
	for _, o := range nodes[0].outcomes() {
		for _, e := range o.Edges {
			if e.Source != model.EdgeProbe || e.Sigma == 0 {
				continue
			}
			at, ok := nodes[0].clock.TrueOfRaw(e.At)
			require.True(t, ok)
			truth := netstamp.Offset(nodes[0].clock, nodes[1].clock, at)
			assert.LessOrEqual(t, e.Lower, truth)
			assert.GreaterOrEqual(t, e.Upper, truth)
			assert.Equal(t, model.StampKernel, e.Stamps)
			checked++
		}
	}
	assert.Positive(t, checked)
}
