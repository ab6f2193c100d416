// SPDX-License-Identifier: Apache-2.0

package part

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestJudgeVersions(t *testing.T) {
	versions := []fleet.Version{
		{Domain: model.VersionKernelDriver, Version: "580.159.04"},
		{Domain: model.VersionVBIOS, Unit: "GPU-1", Version: "96.00.CF.00.01"},
		{Domain: model.VersionVBIOS, Unit: "GPU-2", Version: "96.00.CF.00.02"},
		{Domain: model.VersionCUDA, Version: "13.0"},
	}
	driver := fact{model.VersionKernelDriver, "smi", "580.159.04"}
	for name, c := range map[string]struct {
		facts []fact
		want  report.Status
		text  string
	}{
		"one source agrees":           {[]fact{driver}, report.Shown, "nvidia_kernel_driver 580.159.04; without another source: cuda 13.0, gpu_vbios 96.00.CF.00.01 and 96.00.CF.00.02"},
		"other driver":                {[]fact{{model.VersionKernelDriver, "smi", "580.159.05"}}, report.Failed, "want 580.159.05"},
		"longer version":              {[]fact{{model.VersionKernelDriver, "smi", "580.159.04.1"}}, report.Failed, "want 580.159.04.1"},
		"a version that was missed":   {[]fact{driver, {model.VersionKernel, "uname -r", "6.8.0"}}, report.Failed, "want 6.8.0"},
		"one GPU of two was missed":   {[]fact{{model.VersionVBIOS, "smi", "96.00.CF.00.01"}}, report.Failed, "got 96.00.CF.00.02"},
		"both GPUs":                   {[]fact{driver, {model.VersionVBIOS, "smi", "96.00.CF.00.01"}, {model.VersionVBIOS, "smi", "96.00.CF.00.02"}}, report.Shown, "96.00.CF.00.01 and"},
		"no driver elsewhere":         {[]fact{{model.VersionCUDA, "libcuda", "13.0"}}, report.NotShown, "no version of the driver from another source"},
		"nothing to be compared with": {nil, report.NotShown, "got no other source"},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := judgeVersions(report.Shown, versions, c.facts)
			assert.Equal(t, c.want, status, text)
			assert.Contains(t, text, c.text)
		})
	}
}

func TestJudgeMismatch_OtherSourcesHaveOneVersion_Fails(t *testing.T) {
	loaded, beside := fact{model.VersionKernelDriver, "smi", "580.159.04"}, fact{model.VersionUserDriver, "libcuda", "580.159.04"}
	driver, manager := fleet.Mismatch{Kind: model.FactDriverMismatch}, fleet.Mismatch{Kind: model.FactFabricManagerMismatch}
	assert.Equal(t, report.Failed, judgeMismatch(report.Shown, driver, []fact{loaded, beside}))
	beside.version = "580.126.09"
	assert.Equal(t, report.Shown, judgeMismatch(report.Shown, driver, []fact{loaded, beside}))
	assert.Equal(t, report.Shown, judgeMismatch(report.Shown, driver, nil))
	assert.Equal(t, report.Shown, judgeMismatch(report.Shown, manager, []fact{loaded, loaded}))
}

// Lines as the receiver and json_lines write them.
func event(domain, version string) string {
	return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[` +
		`{"key":"lockstep.fact.kind","value":{"stringValue":"version"}},` +
		`{"key":"lockstep.version.domain","value":{"stringValue":"` + domain + `"}},` +
		`{"key":"lockstep.version.value","value":{"stringValue":"` + version + `"}}],"eventName":"lockstep.host.fact"}]}]}]}`
}

func TestDecodeVersions(t *testing.T) {
	got, err := decodeVersions([]byte(event("kernel", "6.8.0") + "\n" + event("kernel", "6.8.0") + "\n" + event("cuda", "13.0") + "\n" + event("cuda", "13.1")[:90]))
	require.NoError(t, err)
	assert.ElementsMatch(t, []fleet.Version{{Domain: "kernel", Version: "6.8.0"}, {Domain: "cuda", Version: "13.0"}}, got)

	_, err = decodeVersions([]byte(event("kernel", "6.8.0") + "\nno event\n"))
	assert.ErrorContains(t, err, "read events: line 2: ")
}

func TestLibcuda(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libcuda.so.580.159.04"), nil, 0o600))
	require.NoError(t, os.Symlink("libcuda.so.580.159.04", filepath.Join(dir, "libcuda.so.1")))
	assert.Equal(t, "580.159.04", libcuda([]string{filepath.Join(dir, "none"), dir}))
	assert.Empty(t, libcuda([]string{t.TempDir()}))
}

func TestFabric(t *testing.T) {
	assert.Equal(t, []string{"Completed"}, fabric([]byte("<gpu><fabric>\n<state>Completed</state><status>Success</status></fabric></gpu>")))
	assert.Empty(t, fabric([]byte("<gpu><fabric><state>N/A</state></fabric></gpu>")))
	assert.Empty(t, fabric(nil))
}

// right is what the program prints where all is well: three slices, a bit flipped in the second.
func right() fingerprinted {
	mib := 9.5
	return fingerprinted{
		Device: "cuda", Slices: 3, CallMS: 0.4, ExtraMiB: &mib, FlippedSlice: 1,
		Hashes: []string{"a", "b", "c"}, Copy: []string{"a", "b", "c"}, CPU: []string{"a", "b", "c"}, Flipped: []string{"a", "x", "c"},
	}
}

func TestFingerprinted_WrongHashes_Fail(t *testing.T) {
	r := right()
	status, text := r.hashesRight(report.Shown)
	require.Equal(t, report.Shown, status, text)
	for name, c := range map[string]struct {
		spoil func(f *fingerprinted)
		text  string
	}{
		"no hashes":             {func(f *fingerprinted) { *f = fingerprinted{} }, "got 0 of 0"},
		"a slice is missing":    {func(f *fingerprinted) { f.Hashes = f.Hashes[:2] }, "got 2 of 3"},
		"no hash of a slice":    {func(f *fingerprinted) { f.Hashes[2] = "" }, "want all"},
		"a copy differs":        {func(f *fingerprinted) { f.Copy[2] = "y" }, "hash a copy: got other hashes in slices [2]"},
		"the CPU differs":       {func(f *fingerprinted) { f.CPU[0] = "y" }, "hash on the CPU: got other hashes than of cuda in slices [0]"},
		"the flip is not seen":  {func(f *fingerprinted) { f.Flipped[1] = "b" }, "slices []; want 1 alone"},
		"two slices change":     {func(f *fingerprinted) { f.Flipped[2] = "y" }, "slices [1 2]; want 1 alone"},
		"another slice changes": {func(f *fingerprinted) { f.Flipped = []string{"a", "b", "y"} }, "slices [2]; want 1 alone"},
	} {
		t.Run(name, func(t *testing.T) {
			f := right()
			c.spoil(&f)
			status, text := f.hashesRight(report.Shown)
			assert.Equal(t, report.Failed, status)
			assert.Contains(t, text, c.text)
		})
	}
}

func TestFingerprinted_MoreMemoryThanClaimed_Fails(t *testing.T) {
	for _, c := range []struct {
		mib  float64
		want report.Status
	}{{24, report.Shown}, {24.5, report.Failed}} {
		f, p := right(), report.NewPart("node", "", 0)
		*f.ExtraMiB = c.mib
		f.judge(p, "fingerprint-bfloat16", report.Shown)
		require.Len(t, p.Checks, 2)
		assert.Equal(t, c.want, p.Checks[1].Status, p.Checks[1].Text)
	}
}

func TestDevices_NoGPU_ShowsNothing(t *testing.T) {
	p := report.NewPart("node", "", 0)
	n := &node{k: kit.New(t.TempDir(), t.TempDir(), t.TempDir()), p: p}
	n.devices(t.Context())
	assert.Len(t, p.Checks, 8)
	for _, c := range p.Checks {
		assert.Contains(t, []report.Status{report.Noted, report.NotShown}, c.Status, c.Name)
	}
}

// A scratch folder where nothing may run is no fault of what is checked.
func TestNode_StandInThatMayNotRun_IsNotShown(t *testing.T) {
	k, p := kit.New(t.TempDir(), t.TempDir(), t.TempDir()), report.NewPart("node", "", 0)
	n := &node{k: k, p: p, status: report.StandIn, smi: filepath.Join(k.Work, "nvidia-smi")}
	require.NoError(t, os.WriteFile(n.smi, []byte(standInSMI), 0o600))
	assert.Nil(t, n.answer(t.Context()))
	require.Len(t, p.Checks, 1)
	assert.Equal(t, report.NotShown, p.Checks[0].Status, p.Checks[0].Text)

	require.NoError(t, os.Chmod(n.smi, 0o700))
	assert.NotEmpty(t, n.answer(t.Context()))
}
