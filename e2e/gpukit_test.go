// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

const (
	// kitLimit is what a run of the kit may take.
	kitLimit = 10 * time.Minute
	// What a run may leave, and what the folder may take, bytes.
	kitMaxFiles = 8
	kitMaxFile  = 16 << 20
	kitMaxSize  = 40 << 20
	kitNoPython = "none"
)

// newestGlibc is that of the packages of PyTorch: manylinux_2_28.
var newestGlibc = []int{2, 28}

// newerThan says whether a version of glibc's symbols, such as GLIBC_2.34, is newer.
func newerThan(symbols string, limit []int) bool {
	numbers, ok := strings.CutPrefix(symbols, "GLIBC_")
	if !ok {
		return false
	}
	var version []int
	for part := range strings.SplitSeq(numbers, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return true // GLIBC_PRIVATE and the like
		}
		version = append(version, n)
	}
	return slices.Compare(version, limit) > 0
}

func TestGPUKit_NewerThan(t *testing.T) {
	for symbols, want := range map[string]bool{
		"GLIBC_2.2.5": false, "GLIBC_2.28": false, "GLIBC_2.34": true, "GLIBC_2.28.1": true, "GLIBC_3.0": true, "GLIBC_PRIVATE": true, "OTHER_9": false,
	} {
		assert.Equal(t, want, newerThan(symbols, newestGlibc), symbols)
	}
}

// The programs need no library, and the libraries none that a machine with PyTorch lacks.
func TestGPUKit_Files_RunOnOldSystems(t *testing.T) {
	kit := built(t, "gpu-kit")
	dynamic := 0
	var size int64
	require.NoError(t, filepath.WalkDir(kit, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		size += int64(len(content))
		if filepath.Ext(path) == ".gz" {
			content = unzip(t, content)
		}
		if !bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
			return nil
		}
		f, err := elf.NewFile(bytes.NewReader(content))
		require.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		if filepath.Base(path) == "gpu-check" || filepath.Base(path) == "lockstep.gz" {
			assert.Empty(t, libraries, "%s is static", path)
			return nil
		}
		dynamic++
		for _, library := range libraries {
			assert.Regexp(t, `^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*)$`, library, "%s needs it", path)
		}
		symbols, err := f.ImportedSymbols()
		require.NoError(t, err)
		for _, s := range symbols {
			assert.False(t, newerThan(s.Version, newestGlibc), "%s asks for %s of %s; want at most %v", path, s.Name, s.Version, newestGlibc)
		}
		return nil
	}))
	assert.Equal(t, 4, dynamic, "plugin, two stand-ins of libcupti, worker")
	assert.LessOrEqual(t, size, int64(kitMaxSize))
}

func unzip(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	b, err = io.ReadAll(r)
	require.NoError(t, err)
	return b
}

// copiedKit returns a copy in a folder with blanks, which a test may break.
func copiedKit(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a kit")
	require.NoError(t, os.CopyFS(dir, os.DirFS(built(t, "gpu-kit"))))
	return dir
}

// kitRun is one run of check.sh.
type kitRun struct {
	exit           int
	report         *report.Report
	stdout, stderr string
	took           time.Duration
}

// checkKit runs check.sh of a kit in a folder that is not the kit's, with additions to the
// environment, and holds what it left against what is promised of any run.
func checkKit(t *testing.T, kit string, env []string, args ...string) kitRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kitLimit)
	defer cancel()
	cwd, scratch := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(ctx, "sh", append([]string{filepath.Join(kit, "check.sh"), "the report"}, args...)...)
	cmd.Dir, cmd.WaitDelay = cwd, 10*time.Second
	cmd.Env = append(append(os.Environ(), "TMPDIR="+scratch), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	run := kitRun{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(began)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		run.exit, err = exit.ExitCode(), nil
	}
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "want an end within %v", kitLimit)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("exit %d\n%s\n%s", run.exit, run.stdout, run.stderr)
		}
	})
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	assert.Empty(t, left, "left in the scratch folder")
	run.report = readReport(t, filepath.Join(cwd, "the report"))
	assert.Equal(t, run.report.Count(report.Failed) > 0, run.exit == 1, "exit status 1 where a check failed: got %d", run.exit)
	return run
}

// readReport reads a report and checks what is promised of its folder.
func readReport(t *testing.T, dir string) *report.Report {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, report.JSONName))
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	r := &report.Report{}
	require.NoError(t, decoder.Decode(r))
	assert.Equal(t, report.Format, r.Format)
	assert.NotEmpty(t, r.Machine)
	text, err := os.ReadFile(filepath.Join(dir, report.MarkdownName))
	require.NoError(t, err)
	for _, p := range r.Parts {
		assert.NotEmpty(t, p.Checks, "part %s", p.Name)
		for _, c := range p.Checks {
			assert.Contains(t, report.Statuses, c.Status, "%s %s", p.Name, c.Name)
			assert.Regexp(t, `^[^\n]+$`, c.Text, "%s %s has one line", p.Name, c.Name)
			assert.Contains(t, string(text), "`"+c.Name+"`")
		}
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(files), kitMaxFiles)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(kitMaxFile), f.Name())
		assertNamesNoMachine(t, filepath.Join(dir, f.Name()))
		if filepath.Ext(f.Name()) == ".gz" {
			assert.Contains(t, r.Files, f.Name())
			assert.NotEmpty(t, archived(t, filepath.Join(dir, f.Name())), f.Name())
		}
	}
	assert.Len(t, files, len(r.Files)+2, "two reports, and the fixtures that they name")
	return r
}

// archived returns the files in a fixture.
func archived(t *testing.T, path string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	files := map[string][]byte{}
	tape := tar.NewReader(bytes.NewReader(unzip(t, content)))
	for {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[h.Name], err = io.ReadAll(tape)
		require.NoError(t, err)
	}
}

// machineIDs returns what tells this machine from others, as texts and as bytes.
func machineIDs(t *testing.T) (ids [][]byte) {
	t.Helper()
	for _, path := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id"} {
		text, err := os.ReadFile(path)
		if id := bytes.TrimSpace(text); err == nil && len(id) > 0 {
			raw, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
			require.NoError(t, err)
			ids = append(ids, id, raw)
		}
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	if len(host) > 7 { // else it is part of other words
		ids = append(ids, []byte(host))
	}
	require.NotEmpty(t, ids)
	return ids
}

// assertNamesNoMachine looks for this machine in a file and, of an archive, in all that it
// holds.
func assertNamesNoMachine(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	files := map[string][]byte{"": content}
	if filepath.Ext(path) == ".gz" {
		files = archived(t, path)
	}
	for name, content := range files {
		for _, id := range machineIDs(t) {
			assert.False(t, bytes.Contains(content, id), "%s %s has %q", path, name, id)
		}
	}
}

// found returns the checks of a part; of all parts where it has no name.
func (r kitRun) found(part string, status report.Status) (texts []string) {
	for _, p := range r.report.Parts {
		for _, c := range p.Checks {
			if (part == "" || p.Name == part) && c.Status == status {
				texts = append(texts, c.Name+": "+c.Text)
			}
		}
	}
	return texts
}

// noGPU asserts that nothing failed, and that nothing is called shown.
func (r kitRun) noGPU(t *testing.T) {
	t.Helper()
	if hasDriver() {
		t.Skip("there is a GPU here: what is said without one cannot be seen")
	}
	assert.Empty(t, r.found("", report.Failed))
	assert.Empty(t, r.found("", report.Shown))
	assert.NotEmpty(t, r.found("", report.StandIn))
	assert.NotEmpty(t, r.found("", report.NotShown))
	assert.Zero(t, r.exit)
	assert.Empty(t, r.stderr)
}

// All parts run without Python, from a kit that cannot be written. Alone, since the ranks of
// the demo compete for cores.
func TestGPUKit_WithoutPython_StandInsAreRight(t *testing.T) {
	kit := copiedKit(t)
	require.NoError(t, filepath.WalkDir(kit, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o555))
	}))
	run := checkKit(t, kit, nil, "-python", kitNoPython)
	run.noGPU(t)
	listed, err := exec.CommandContext(t.Context(), filepath.Join(kit, "gpu-check"), "-list").Output()
	require.NoError(t, err)
	assert.Len(t, run.report.Parts, strings.Count(string(listed), "\n"))
	manifest, err := os.ReadFile(filepath.Join(kit, "MANIFEST"))
	require.NoError(t, err)
	version, commit, _ := strings.Cut(run.report.Kit, " ")
	assert.Contains(t, string(manifest), "\n# commit "+commit+"\n")
	assert.Contains(t, "\n"+string(manifest), "\n# version "+version+"\n")
}

// kitQuick are the parts that the quick tier runs with PyTorch: others take minutes.
const kitQuick = "demo,node,cupti,nccl"

func TestTorchGPUKit_StandInsAreRight(t *testing.T) {
	python := torchPython(t)
	args := []string{"-only", kitQuick}
	if tier.Full(t) {
		args = nil
	}
	checkKit(t, built(t, "gpu-kit"), []string{"PYTHON=" + python}, args...).noGPU(t)
}

// What a kit lost on its way is a line each; its other parts run.
func TestGPUKit_BrokenFiles_AreNamedAndOthersRun(t *testing.T) {
	t.Parallel()
	kit := copiedKit(t)
	require.NoError(t, os.Remove(filepath.Join(kit, "lib", "libnccl-profiler-lockstep.so")))
	require.NoError(t, os.WriteFile(filepath.Join(kit, "standin", "libcupti-standin.so"), []byte("no library"), 0o600))
	run := checkKit(t, kit, nil, "-python", kitNoPython)
	assert.Equal(t, []string{
		"file: lib/libnccl-profiler-lockstep.so is missing: copy the kit to this machine again",
		"file: standin/libcupti-standin.so is not as it was built: copy the kit to this machine again",
	}, run.found("kit", report.Failed))
	assert.NotEmpty(t, run.found("node", report.StandIn))
}

// Without its command the kit still says what it can.
func TestGPUKit_CommandThatCannotBeUnpacked_IsNamedAndOthersRun(t *testing.T) {
	t.Parallel()
	kit := copiedKit(t)
	require.NoError(t, os.Truncate(filepath.Join(kit, "bin", "lockstep.gz"), 1<<20))
	run := checkKit(t, kit, nil, "-python", kitNoPython, "-only", "node")
	broken := strings.Join(run.found("kit", report.Failed), "\n")
	assert.Contains(t, broken, "unpack lockstep: write lockstep.gz: unexpected EOF")
	assert.NotEmpty(t, run.found("node", report.StandIn))
}

// Modes are lost by many ways of copying: the kit runs from its scratch folder.
func TestGPUKit_LostModes_RunsACopy(t *testing.T) {
	t.Parallel()
	kit := copiedKit(t)
	require.NoError(t, filepath.WalkDir(kit, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	}))
	run := checkKit(t, kit, nil, "-python", kitNoPython, "-only", "node")
	assert.Empty(t, run.found("", report.Failed))
}

// kitRefused runs check.sh of a kit that cannot start, and returns its one line.
func kitRefused(t *testing.T, kit string, env ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(kit, "check.sh"))
	cmd.Dir, cmd.Stderr, cmd.Env = t.TempDir(), &stderr, append(os.Environ(), env...)
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Regexp(t, `^gpu-kit: [^\n]+\n$`, stderr.String())
	return stderr.String()
}

func TestGPUKit_NothingRuns_IsOneLine(t *testing.T) {
	t.Parallel()
	kit, scratch := copiedKit(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(kit, "gpu-check"), []byte(elf.ELFMAG), 0o600))
	line := kitRefused(t, kit, "TMPDIR="+scratch, "PYTHON=sh")
	assert.Contains(t, line, "cannot run it in "+kit+"; "+scratch+": runs no program")
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	assert.Empty(t, left)

	assert.Contains(t, kitRefused(t, kit, "PYTHON=/nonexistent/python"), "find Python: got no program /nonexistent/python")
	require.NoError(t, os.Remove(filepath.Join(kit, "MANIFEST")))
	assert.Contains(t, kitRefused(t, kit), "open the kit: got no gpu-check and MANIFEST in "+kit)
}

func TestGPUKit_OtherArchitecture_IsOneLine(t *testing.T) {
	t.Parallel()
	kit := copiedKit(t)
	manifest := filepath.Join(kit, "MANIFEST")
	content, err := os.ReadFile(manifest)
	require.NoError(t, err)
	lines := strings.Split(string(content), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# architecture ") })
	require.NotEqual(t, -1, at)
	lines[at] = "# architecture vax"
	require.NoError(t, os.WriteFile(manifest, []byte(strings.Join(lines, "\n")), 0o600))
	assert.Regexp(t, `start: this machine is \S+; the kit is for vax: `, kitRefused(t, kit))
}

// script makes a program of a shell script, and returns its folder.
func script(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700))
	return dir
}

// oldSMI answers as a driver of 2021 does.
const oldSMI = `case "$*" in
"-q -x") echo '<?xml version="1.0" ?><nvidia_smi_log><driver_version>470.57.02</driver_version><cuda_version>11.4</cuda_version>
<gpu id="00000000:3B:00.0"><serial>1322621014873</serial><uuid>GPU-5f1c9e27-43ab-8d60-b7e2-90c4d15a6f38</uuid><vbios_version>92.00.36.00.01</vbios_version></gpu></nvidia_smi_log>' ;;
*driver_version*) echo 470.57.02 ;;
*vbios_version*) echo 92.00.36.00.01 ;;
*) exit 2 ;;
esac
`

func TestGPUKit_NvidiaSMI(t *testing.T) {
	t.Parallel()
	if hasDriver() {
		t.Skip("there is a driver here: its libraries contradict a made-up nvidia-smi")
	}
	for name, c := range map[string]struct{ script, failed, read string }{
		"hangs":          {"sleep 1000\n", "run nvidia-smi: got no end within its time limit", ""},
		"prints garbage": {"echo '\x01\x02<no xml'\n", "read nvidia-smi -q -x: byte ", ""},
		"fails":          {"echo 'NVIDIA-SMI has failed' >&2; exit 9\n", "NVIDIA-SMI has failed", ""},
		"old driver":     {oldSMI, "", "nvidia_kernel_driver 470.57.02"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"PATH=" + script(t, "nvidia-smi", c.script) + ":" + os.Getenv("PATH")}
			run := checkKit(t, built(t, "gpu-kit"), env, "-python", kitNoPython, "-only", "node")
			failed := run.found("node", report.Failed)
			if c.failed == "" {
				assert.Empty(t, failed)
				assert.Contains(t, strings.Join(run.found("node", report.StandIn), "\n"), c.read)
				assert.Empty(t, run.found("node", report.Shown), "a program of that name is no driver")
				return
			}
			require.Len(t, failed, 1)
			assert.Contains(t, failed[0], c.failed)
			assert.Contains(t, run.stdout, "receiver ", "others run")
			assert.Less(t, run.took, time.Minute)
		})
	}
}

// A Python that hangs ends with the time for everything, and each part says that it had none.
func TestGPUKit_PythonThatHangs_EndsInTime(t *testing.T) {
	t.Parallel()
	python := filepath.Join(script(t, "python", "sleep 1000\n"), "python")
	run := checkKit(t, built(t, "gpu-kit"), []string{"PYTHON=" + python}, "-limit", "6s")
	assert.Less(t, run.took, 30*time.Second)
	require.NotEmpty(t, run.report.Parts)
	assert.Len(t, run.found("kit", report.Failed), 1, "the interpreter that was named")
	for _, p := range run.report.Parts {
		if p.Name == "kit" {
			continue
		}
		require.Len(t, p.Checks, 1, p.Name)
		assert.Contains(t, p.Checks[0].Text, "the time for everything was over", p.Name)
	}
	assert.Contains(t, run.report.Fact("gpu"), "run machine.py: the time that was left ran out")
}

// A Python that answers and then hangs costs a part its time, and no other part anything.
func TestGPUKit_ProgramsThatHang_EndAtTheirLimit(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("takes a minute: the full tier runs it")
	}
	t.Parallel()
	dir := script(t, "python", `case $1 in
*/machine.py) echo '{"python": "3.12.0", "torch": {"version": "2.11.0", "cuda": "13.0", "reason": "no driver"}}' ;;
*) sleep 1000 ;;
esac
`)
	run := checkKit(t, built(t, "gpu-kit"), []string{"PYTHON=" + filepath.Join(dir, "python")}, "-only", "node")
	assert.Contains(t, strings.Join(run.found("node", report.Failed), "\n"), "run fingerprint.py: got no end within its time limit")
	assert.Contains(t, strings.Join(run.found("node", report.StandIn), "\n"), "receiver: ")
}
