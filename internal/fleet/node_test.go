// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// node is a made-up node in a folder.
type node struct {
	t   *testing.T
	dir string
	Files
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	return &node{t: t, dir: dir, Files: Files{
		Proc: filepath.Join(dir, "proc"), Sys: filepath.Join(dir, "sys"), Libraries: []string{filepath.Join(dir, "none"), filepath.Join(dir, "lib")},
	}}
}

func (n *node) write(name, content string) *node {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	require.NoError(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(n.t, os.WriteFile(path, []byte(content), 0o600))
	return n
}

func (n *node) link(name, to string) *node {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	require.NoError(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(n.t, os.Symlink(to, path))
	return n
}

// driver writes what a loaded driver shows, in the words of /proc/driver/nvidia/version.
func (n *node) driver(version string) *node {
	n.t.Helper()
	return n.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  "+version+"  Fri May 31 09:35:42 UTC 2024\n"+
		"GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n").write("sys/module/nvidia/version", version+"\n")
}

func (n *node) nic(device, board, firmware string) *node {
	n.t.Helper()
	at := "sys/class/infiniband/" + device + "/"
	return n.write(at+"fw_ver", firmware+"\n").write(at+"board_id", board+"\n").write(at+"hca_type", "MT4129\n")
}

// versions are what was read, by domain and unit.
func versions(r *Read) map[string]string {
	out := map[string]string{}
	for _, v := range r.Versions {
		name := string(v.Domain)
		for _, part := range []string{v.Model, v.Unit} {
			if part != "" {
				name += " " + part
			}
		}
		out[name] = v.Version
	}
	return out
}

func kinds(list []Mismatch) (out []string) {
	for _, m := range list {
		out = append(out, m.Kind)
	}
	return out
}

func kernelDriver(version string) Version {
	return Version{Domain: model.VersionKernelDriver, Version: version, Witness: "w"}
}
