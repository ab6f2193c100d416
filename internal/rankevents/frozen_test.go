// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// hierarchy is a proc with process 42 in a cgroup of a hierarchy that is mounted in dir.
func hierarchy(t *testing.T, cgroup, mount, file, content string) (proc string) {
	t.Helper()
	dir := t.TempDir()
	proc = filepath.Join(dir, "proc")
	put := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	put(filepath.Join(proc, "42", "status"), "Name:\tpython\nState:\tS (sleeping)\nTracerPid:\t0\n")
	put(filepath.Join(proc, "42", "cgroup"), cgroup)
	put(filepath.Join(proc, "self", "mountinfo"), fmt.Sprintf(mount, dir))
	if file != "" {
		put(filepath.Join(dir, file), content)
	}
	return proc
}

func TestProcessState_OfAFrozenCgroup(t *testing.T) {
	const (
		two    = "30 23 0:26 / %s/fs rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		one    = "31 23 0:27 / %s/fs rw shared:9 - cgroup cgroup rw,freezer\n"
		within = "30 23 0:26 /pod %s/fs rw shared:9 - cgroup2 cgroup2 rw\n"
		other  = "31 23 0:27 / %s/fs rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	)
	for name, tc := range map[string]struct {
		cgroup, mount, file, content string
		want                         model.ProcessState
	}{
		"version 2":                      {"0::/job/a\n", two, "fs/job/a/cgroup.events", "populated 1\nfrozen 1\n", model.ProcessFrozen},
		"version 2, it runs":             {"0::/job/a\n", two, "fs/job/a/cgroup.events", "populated 1\nfrozen 0\n", model.ProcessRunning},
		"version 2, mounted from within": {"0::/pod/a\n", within, "fs/a/cgroup.events", "frozen 1\n", model.ProcessFrozen},
		"version 2, mounted elsewhere":   {"0::/podium/a\n", within, "fs/ium/a/cgroup.events", "frozen 1\n", model.ProcessRunning},
		"version 1":                      {"5:cpu:/x\n4:freezer:/job\n", one, "fs/job/freezer.state", "FROZEN\n", model.ProcessFrozen},
		"version 1, it runs":             {"4:freezer:/job\n", one, "fs/job/freezer.state", "THAWED\n", model.ProcessRunning},
		"version 1, on its way":          {"4:freezer:/job\n", one, "fs/job/freezer.state", "FREEZING\n", model.ProcessRunning},
		"not mounted":                    {"4:freezer:/job\n", other, "fs/job/freezer.state", "FROZEN\n", model.ProcessRunning},
		"not readable":                   {"0::/job\n", two, "", "", model.ProcessRunning},
		"no cgroup":                      {"", two, "", "", model.ProcessRunning},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, processState(hierarchy(t, tc.cgroup, tc.mount, tc.file, tc.content), 42))
		})
	}
}

// A real process in a real cgroup that is frozen, where a test may make one.
func TestProcessState_OfARealFrozenCgroup(t *testing.T) {
	dir, freeze, thaw := realCgroup(t)
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		thaw()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.Remove(dir)
	})
	pid := cmd.Process.Pid
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
	is := func(want model.ProcessState) {
		t.Helper()
		assert.Eventually(t, func() bool { return processState(procDirectory, pid) == want }, 5*time.Second, time.Millisecond, want)
	}
	is(model.ProcessRunning)
	freeze()
	is(model.ProcessFrozen)
	thaw()
	is(model.ProcessRunning)
}

// realCgroup makes a cgroup that can be frozen.
func realCgroup(t *testing.T) (dir string, freeze, thaw func()) {
	t.Helper()
	for _, m := range cgroupMounts(procDirectory) {
		dir := filepath.Join(m.point, fmt.Sprintf("lockstep-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		file, on, off := "freezer.state", "FROZEN", "THAWED"
		if m.unified {
			file, on, off = "cgroup.freeze", "1", "0"
		}
		write := func(text string) func() {
			return func() { _ = os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600) }
		}
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return dir, write(on), write(off)
		}
		_ = os.Remove(dir)
	}
	t.Skip("no cgroup can be made here that can be frozen")
	return "", nil, nil
}
