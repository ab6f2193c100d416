// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestFiles(t *testing.T) {
	n := newNode(t).driver("550.90.07").write("proc/sys/kernel/osrelease", "5.15.0-107-generic\n").
		link("lib/libnvidia-ml.so.1", "libnvidia-ml.so.550.90.07").
		nic("mlx5_0", "MT_0000000838", "28.39.1002").nic("mlx5_1", "MT_0000000838", "28.41.1000").
		write("drivers/mlx5_core/version", "24.04-0.6.6\n").
		link("sys/class/infiniband/mlx5_0/device/driver/module", "../../../../../../drivers/mlx5_core").
		write("image", "registry/llama@sha256:0123\n")
	n.ImageFile = filepath.Join(n.dir, "image")
	r := n.Read()
	assert.Empty(t, r.Problems)
	assert.Empty(t, r.Mismatches)
	assert.Equal(t, map[string]string{
		"nvidia_kernel_driver": "550.90.07", "nvidia_user_driver": "550.90.07", "kernel": "5.15.0-107-generic",
		"nic_firmware MT_0000000838 mlx5_0": "28.39.1002", "nic_firmware MT_0000000838 mlx5_1": "28.41.1000",
		"nic_driver mlx5_core mlx5_0": "24.04-0.6.6", "container_image": "registry/llama@sha256:0123",
	}, versions(r))
	for _, v := range r.Versions {
		assert.NotEmpty(t, v.Witness)
	}
}

// A node without GPUs and NICs has a kernel.
func TestANodeHasWhatItHas(t *testing.T) {
	n := newNode(t)
	r := n.Read()
	assert.Equal(t, &Read{}, r)
	n.Image = "llama:7"
	assert.Equal(t, map[string]string{"container_image": "llama:7"}, versions(n.Read()))
}

// NVIDIA's open modules call themselves otherwise, and so do those of ARM.
func TestDriversNames(t *testing.T) {
	for line, want := range map[string]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build  (dvs-builder@U22)  Wed": "580.126.09",
		"NVRM version: NVIDIA UNIX aarch64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023":                   "535.54.03",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82":                                                     "470.82",
	} {
		n := newNode(t).write("proc/driver/nvidia/version", line+"\n")
		assert.Equal(t, map[string]string{"nvidia_kernel_driver": want}, versions(n.Read()))
	}
	n := newNode(t).write("proc/driver/nvidia/version", "nonsense\n").write("sys/module/nvidia/version", "470.82\n")
	r := n.Read()
	assert.Equal(t, []string{"read " + n.Proc + `/driver/nvidia/version: got "nonsense"; want NVRM version and a number`}, r.Problems)
	assert.Equal(t, map[string]string{"nvidia_kernel_driver": "470.82"}, versions(r))
}

// A package was updated below a driver that is loaded.
func TestANodeThatDoesNotFitTogether(t *testing.T) {
	n := newNode(t).driver("550.90.07").link("lib/libnvidia-ml.so.1", "libnvidia-ml.so.580.126.09")
	manager := &Read{Versions: []Version{{Domain: model.VersionFabricManager, Version: "590.48.01", Witness: "nv-fabricmanager --version"}}}
	all := Join(n.Read(), manager)
	require.Equal(t, []string{model.FactDriverMismatch, model.FactFabricManagerMismatch}, kinds(all.Mismatches))
	assert.Equal(t, fmt.Sprintf("the kernel has NVIDIA's driver 550.90.07 loaded (%s/driver/nvidia/version), and the driver's libraries are of 580.126.09 (%s/lib/libnvidia-ml.so.1)",
		n.Proc, n.dir), all.Mismatches[0].What)

	n.write("sys/module/nvidia/version", "535.54.03\n")
	assert.Equal(t, []string{model.FactDriverMismatch}, kinds(n.Read().Mismatches))
	assert.Empty(t, Join(&Read{Versions: []Version{kernelDriver("550.90.07")}}, &Read{Versions: []Version{kernelDriver("1.1")}}).Mismatches, "the first source holds")
}

func TestWhatIsNoVersionIsAProblem(t *testing.T) {
	n := newNode(t).write("proc/sys/kernel/osrelease", strings.Repeat("x", maxFile+1)).
		write("sys/module/nvidia/version", strings.Repeat("5", maxText+1)).
		write("sys/class/infiniband/mlx5_0/fw_ver", "28\x1b[2J").
		write("sys/class/infiniband/mlx5_0/board_id", "b").
		link("lib/libnvidia-ml.so.1", "libnvidia-ml.so.old").
		write("none/libnvidia-ml.so.1/x", "a folder")
	r := n.Read()
	assert.Empty(t, r.Versions)
	assert.Equal(t, []string{
		"read " + n.Proc + "/sys/kernel/osrelease: got more than 4096 bytes; want at most that",
		"read " + n.Sys + "/module/nvidia/version: got 513 bytes; want at most 512",
		"read link " + n.dir + `/lib/libnvidia-ml.so.1: got "libnvidia-ml.so.old"; want libnvidia-ml.so and a version`,
		"read " + n.Sys + `/class/infiniband/mlx5_0/fw_ver: got "28\x1b[2J"; want one line of visible ASCII`,
	}, r.Problems)
	n = newNode(t).write("proc/sys/kernel/osrelease/x", "a folder in place of a file")
	assert.Equal(t, []string{"read " + n.Proc + "/sys/kernel/osrelease: got a folder; want a regular file"}, n.Read().Problems)
}

func TestManyUnitsAreLeftOutAndCounted(t *testing.T) {
	n := newNode(t).write("device/fw_ver", "28.39.1002\n").write("device/board_id", "board\n")
	for i := range maxUnits + 3 {
		n.link(fmt.Sprintf("sys/class/infiniband/mlx5_%03d", i), "../../../device")
	}
	r := n.Read()
	assert.Len(t, r.Versions, maxUnits)
	assert.Equal(t, 3, r.LeftOut)
}
