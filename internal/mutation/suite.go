// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Tier is one size of the tests, selected by an environment variable.
type Tier struct {
	Name            string
	Variable, Value string
}

// Outcome is what one tier makes of a mutant.
type Outcome string

// Outcomes.
const (
	Alive    Outcome = "alive"
	Killed   Outcome = "killed"    // a test failed
	TimedOut Outcome = "timed out" // which counts as killed
	// NotCompiled is a mutant that passed the type checker, but not the compiler, or not
	// the compiler on the tests.
	NotCompiled Outcome = "not compiled"
)

// dead reports whether the tests noticed the mutant.
func (o Outcome) dead() bool { return o == Killed || o == TimedOut }

// suite is the tests of one package.
type suite struct {
	path, dir string // import path; folder to run in
	tests     string // identifies the compiled tests and all that they import
	// tiered is false where the tests do not know the variable that selects the tier, so that
	// both tiers are the same.
	tiered bool
	limits map[Tier]time.Duration
}

// run is what one run of a suite came to.
type run struct {
	outcome Outcome
	test    string // first failed test, where the output names one
	output  string // its end
	took    time.Duration
}

// buildLimit bounds the compiler, which has no loops of a mutant to run.
const buildLimit = 10 * time.Minute

// rejectedError is what the compiler wrote about sources that it rejects.
type rejectedError struct{ output string }

func (e *rejectedError) Error() string { return strings.TrimSpace(e.output) }

// build compiles the tests into the file binary. The error is a rejectedError where the
// compiler rejects them. overlay is a file for -overlay, or empty.
func (s *suite) build(ctx context.Context, overlay, binary string) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := command(ctx, "go", "test", "-c", "-trimpath", "-vet=off", "-ldflags=-s -w",
		"-overlay="+overlay, "-o", binary, s.path)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.As(err, &exit) && diagnostic.Match(out):
		err = &rejectedError{string(out)}
	case exit != nil:
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	case err == nil:
		_, err = os.Stat(binary) // there is none of a package without tests
	}
	if err != nil {
		return fmt.Errorf("compile tests of %s: %w", s.path, err)
	}
	return nil
}

// grace is the time that a test binary has beyond its own limit to write what it was at.
const grace = 10 * time.Second

// run runs the binary until a test fails or limit is over, or one test of it alone where
// only names it; the tests' temporary folders go below temp. An error means that ctx is over
// or that the binary could not be started.
func (s *suite) run(ctx context.Context, binary, temp string, tier Tier, limit time.Duration, only string) (run, error) {
	inner, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	args := []string{"-test.failfast", "-test.paniconexit0", "-test.timeout=" + limit.String()}
	if only != "" {
		args = append(args, "-test.run=^"+regexp.QuoteMeta(only)+"$")
	}
	cmd := command(inner, binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), tier.Variable+"="+tier.Value, "TMPDIR="+temp)
	cmd.WaitDelay = grace
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	err := cmd.Run()
	r := run{outcome: Killed, took: time.Since(start), output: string(output.kept)}
	if cmd.Process != nil {
		_ = killGroup(cmd) // children of a test that failed
	}
	if ctx.Err() != nil {
		return run{}, fmt.Errorf("run %s tests of %s: %w", tier.Name, s.path, ctx.Err())
	}
	r.test = failedTest(r.output)
	var exit *exec.ExitError
	switch {
	case err == nil:
		r.outcome = Alive
	case inner.Err() != nil || strings.Contains(r.output, "panic: test timed out after"):
		r.outcome = TimedOut
	case !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return run{}, fmt.Errorf("run %s tests of %s: %w", tier.Name, s.path, err)
	}
	return r, nil
}

// tail keeps the last bytes written.
type tail struct{ kept []byte }

const tailSize = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^\s*running tests:\n\s*(\S+)`)

func failedTest(output string) string {
	match := failed.FindStringSubmatch(output)
	if match == nil {
		return ""
	}
	return match[1] + match[2]
}

// identify sets what is known of the suite from its compiled tests: which they are, and
// whether they contain the name of variable.
func (s *suite) identify(binary, variable string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("identify tests of %s: %w", s.path, err)
	}
	sum := sha256.Sum256(content)
	s.tests = hex.EncodeToString(sum[:8])
	s.tiered = bytes.Contains(content, []byte(variable))
	return nil
}

// writeOverlay writes the changed file of m and an overlay that puts it in place of the
// original into the folder dir, and returns the path of the overlay.
func writeOverlay(m Mutant, dir string) (string, error) {
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, m.content(), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file.path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
