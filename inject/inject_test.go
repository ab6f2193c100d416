// SPDX-License-Identifier: Apache-2.0

// Package inject tests the code in C that runs inside the processes of a job: it
// compiles the programs of ring_test, plainly and with sanitizers, and runs them. It holds nothing else.
package inject

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// exitSkipped is what a case of ring_test/test.h ends with where it cannot run.
const exitSkipped = 77

// variants are the ways everything is compiled. lap is how many seconds the writers on
// each kind of lane are lapped, enough for hundreds of stops in mid-record;
// LOCKSTEP_LAPPED sets others, and bench/ring runs a minute of each.
var variants = []struct{ name, san, lap string }{
	{"plain", cbuild.Plain, "0.6"},
	{"asan", cbuild.ASan, "0.3"},
	{"tsan", cbuild.TSan, "0.5"},
}

// lapSeconds is how long the writers of one variant are lapped.
func lapSeconds(lap string) string {
	return cmp.Or(os.Getenv("LOCKSTEP_LAPPED"), lap)
}

// build compiles the tests of one variant and returns their folder.
func build(t *testing.T, san string) string {
	t.Helper()
	cbuild.Variant(t, san, "inject", "tests")
	return filepath.Join(testdata.Root(t), "bin", "inject", san)
}

// units are the programs of test cases in a folder of programs.
func units(t *testing.T, dir string) (programs []string) {
	t.Helper()
	sources, err := filepath.Glob("ring_test/unit_*.c")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, source := range sources {
		programs = append(programs, filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c")))
	}
	return programs
}

// bare is the environment without what would change the ring.
func bare() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "LOCKSTEP_") && !strings.HasPrefix(name, "SLURM_") {
			env = append(env, v)
		}
	}
	return append(env, "TSAN_OPTIONS=halt_on_error=1", "ASAN_OPTIONS=detect_leaks=0")
}

// run runs one program, which must end well.
func run(t *testing.T, exe string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = bare()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitSkipped {
		t.Skipf("%s", out)
	}
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestC(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			dir := build(t, v.san)
			for _, unit := range units(t, dir) {
				runCases(t, unit)
			}
			t.Run("lapped", func(t *testing.T) {
				t.Log(run(t, filepath.Join(dir, "lapped"), lapSeconds(v.lap)))
			})
		})
	}
}

// runCases runs every case of one program as a test of its own.
func runCases(t *testing.T, unit string) {
	t.Helper()
	for name := range strings.FieldsSeq(run(t, unit, "--list")) {
		t.Run(filepath.Base(unit)+"/"+name, func(t *testing.T) {
			t.Parallel()
			run(t, unit, name)
		})
	}
}

// field is where one field of a structure lies.
type field struct{ offset, size int }

// TestFormatDocument compares every table of docs/format/ring.md that gives
// offsets with the structures that gcc makes of ring.h.
func TestFormatDocument(t *testing.T) {
	inC := parseOffsets(t, run(t, filepath.Join(build(t, cbuild.Plain), "offsets")))
	doc, err := os.ReadFile("../docs/format/ring.md")
	require.NoError(t, err)
	inDoc := parseTables(t, doc)
	for name, want := range inC {
		got, ok := inDoc[name]
		if !ok {
			require.Contains(t, name, "reserved", "docs/format/ring.md: %s is missing", name)
			continue
		}
		require.Equal(t, want, got, "docs/format/ring.md: %s", name)
	}
	for name := range inDoc {
		require.Contains(t, inC, name, "docs/format/ring.md: no such field in ring.h")
	}
}

func parseOffsets(t *testing.T, out string) map[string]field {
	t.Helper()
	fields := map[string]field{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		require.Len(t, f, 3)
		fields[f[0]] = field{number(t, f[1]), number(t, f[2])}
	}
	return fields
}

// parseTables reads tables under headings such as "### `header`, 4096 bytes" whose
// rows begin "| offset | size | `field` |".
func parseTables(t *testing.T, doc []byte) map[string]field {
	t.Helper()
	fields := map[string]field{}
	structure := ""
	for s := bufio.NewScanner(bytes.NewReader(doc)); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "#") {
			structure = ""
			if parts := strings.Split(line, "`"); len(parts) == 3 && strings.HasSuffix(line, " bytes") {
				structure = parts[1]
				size := strings.Fields(strings.Trim(parts[2], ", "))[0]
				fields[structure] = field{0, number(t, size)}
			}
			continue
		}
		cells := strings.Split(line, "|")
		if structure == "" || len(cells) < 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		name := structure + "." + strings.Trim(cells[3], " `")
		fields[name] = field{number(t, strings.TrimSpace(cells[1])), number(t, strings.TrimSpace(cells[2]))}
	}
	return fields
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	require.NoError(t, err)
	return n
}
