// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
)

// envJobID names the job of whatever is observed here.
const envJobID = "LOCKSTEP_JOB_ID"

// maxEndpoints bounds the debug servers that are asked.
const maxEndpoints = 1 << 14

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	_, ranksErr := frwatch.ParseRanks(c.Ranks)
	if ranksErr != nil {
		ranksErr = fmt.Errorf("check ranks: %w", ranksErr)
	}
	_, nameErr := c.nameFunc()
	return errors.Join(c.validatePaths(), nameErr, ranksErr, c.validatePull(), c.validateTrigger(), c.validateTimes(), c.validateNumbers())
}

func (c *Config) validatePaths() error {
	var errs []error
	for _, list := range []struct {
		field string
		globs []string
	}{{"include", c.Include}, {"exclude", c.Exclude}} {
		for i, glob := range list.globs {
			if glob == "" {
				errs = append(errs, fmt.Errorf("check %s[%d]: got an empty string; want a file, directory or glob", list.field, i))
			}
			if _, err := filepath.Match(glob, ""); err != nil {
				errs = append(errs, fmt.Errorf("check %s[%d]: got %q; want a glob: %w", list.field, i, glob, err))
			}
		}
	}
	for i, prefix := range c.Trigger.Pipes {
		if prefix == "" {
			errs = append(errs, fmt.Errorf("check trigger::pipes[%d]: got an empty string; want the value of TORCH_NCCL_DEBUG_INFO_PIPE_FILE", i))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateTrigger() error {
	if err := web.CheckConfig(&c.Trigger.ServerConfig); err != nil {
		return fmt.Errorf("trigger: %w", err)
	}
	return nil
}

func (c *Config) validatePull() error {
	endpoints, err := c.endpoints()
	switch {
	case err != nil:
		return fmt.Errorf("check pull::endpoints: %w", err)
	case len(endpoints) > maxEndpoints:
		return fmt.Errorf("check pull::endpoints: got %d; want at most %d", len(endpoints), maxEndpoints)
	case len(endpoints) > 0 && cmp.Or(c.JobID, os.Getenv(envJobID)) == "":
		return errors.New("check job_id: got none with pull::endpoints, which do not tell whose they are; want one, or " + envJobID)
	case c.Pull.Interval < 0:
		return fmt.Errorf("check pull::interval: got %v; want 0 for on request only, or more", c.Pull.Interval)
	}
	return nil
}

func (c *Config) validateTimes() error {
	var errs []error
	for _, f := range []struct {
		name       string
		got, least time.Duration
	}{
		{"poll_interval", c.PollInterval, time.Millisecond},
		{"settle", c.Settle, 0},
		{"max_age", c.MaxAge, 0},
		{"wait", c.Wait, 0},
		{"max_wait", c.MaxWait, c.Wait},
		{"window", c.Window, time.Millisecond},
		{"stall_after", c.StallAfter, 0},
		{"pull::timeout", c.Pull.Timeout, time.Millisecond},
		{"trigger::min_interval", c.Trigger.MinInterval, 0},
	} {
		if f.got < f.least {
			errs = append(errs, fmt.Errorf("check %s: got %v; want at least %v, with a unit", f.name, f.got, f.least))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateNumbers() error {
	var errs []error
	if c.WorldSize < 0 || c.WorldSize > frwatch.MaxRanks {
		errs = append(errs, fmt.Errorf("check world_size: got %d; want 0 for unknown, or at most %d", c.WorldSize, frwatch.MaxRanks))
	}
	for _, f := range []struct {
		name string
		got  int64
	}{
		{"max_files", int64(c.MaxFiles)},
		{"max_file_bytes", c.MaxFileBytes},
		{"max_open_events", int64(c.MaxOpenEvents)},
		{"max_series", int64(c.MaxSeries)},
		{"batch_ops", int64(c.BatchOps)},
		{"batch_states", int64(c.BatchStates)},
		{"keep::max_bytes", c.Keep.MaxBytes},
		{"keep::max_files", int64(c.Keep.MaxFiles)},
	} {
		if f.got < 1 {
			errs = append(errs, fmt.Errorf("check %s: got %d; want at least 1", f.name, f.got))
		}
	}
	return errors.Join(errs...)
}

// nameFunc says how a file's name tells a rank.
func (c *Config) nameFunc() (frwatch.NameFunc, error) {
	if c.RankPattern == "" {
		return flightrecorder.RankOf, nil
	}
	re, err := regexp.Compile(c.RankPattern)
	if err != nil {
		return nil, fmt.Errorf("check rank_pattern: got %q; want a regular expression: %w", c.RankPattern, err)
	}
	if re.NumSubexp() < 1 {
		return nil, fmt.Errorf("check rank_pattern: got %q without a group; want the number in the first group, as in %q", c.RankPattern, `_r(\d+)`)
	}
	return func(path string) (rank int64, prefix string, ok bool) {
		dir, name := filepath.Split(path)
		at := re.FindStringSubmatchIndex(name)
		if len(at) < 4 || at[2] < 0 {
			return 0, "", false
		}
		rank, err := strconv.ParseInt(name[at[2]:at[3]], 10, 64)
		return rank, dir + name[:at[2]], err == nil
	}, nil
}

func (c *Config) endpoints() ([]frwatch.Endpoint, error) {
	var out []frwatch.Endpoint
	for i := range c.Pull.Endpoints {
		e := &c.Pull.Endpoints[i]
		ranks, err := frwatch.ParseRanks(e.Ranks)
		if err != nil {
			return nil, err
		}
		of, err := frwatch.ParseEndpoint(e.URL, ranks)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// patterns are where files are looked for.
func (c *Config) patterns() []string {
	if len(c.Include) > 0 || len(c.Pull.Endpoints) > 0 {
		return c.Include
	}
	return frwatch.DefaultPatterns(os.Getenv)
}
