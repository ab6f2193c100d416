// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// Config configures the report exporter.
type Config struct {
	// Path is where text is written: stdout, stderr, or a file that it is appended to.
	Path string `mapstructure:"path"`
	// Format is how a finding is written: block has some lines with labels, line has one line.
	Format string `mapstructure:"format"`
	// Width is how many columns lines have, 80 to 120; 0: those of the terminal, or 80. Format line has no width.
	Width int `mapstructure:"width"`
	// Color is when text is written in color: auto does on a terminal.
	Color string `mapstructure:"color"`
	// MinSeverity leaves out findings that have never been as severe.
	MinSeverity string `mapstructure:"min_severity"`
	// Updates is which later revisions of a finding are written: those that changed, or none.
	Updates string `mapstructure:"updates"`
	// UpdateInterval is the least time between two changes of open findings that are written.
	UpdateInterval time.Duration `mapstructure:"update_interval"`
	// Summary writes at the end what the findings came to.
	Summary bool `mapstructure:"summary"`
	// Queue holds findings while the reader does not read, so that other exporters go on. With none, the sender
	// waits.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// Retry is how often findings that could not be written are written again.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// Values of settings.
const (
	toStdout, toStderr                   = "stdout", "stderr"
	formatBlock, formatLine              = "block", "line"
	colorAuto, colorAlways, colorNever   = "auto", "always", "never"
	updatesChanged, updatesNone          = "changed", "none"
	severityInfo, severityWarn, sevError = "info", "warn", "error"
)

var (
	formats    = []string{formatBlock, formatLine}
	colors     = []string{colorAuto, colorAlways, colorNever}
	updates    = []string{updatesChanged, updatesNone}
	severities = []string{severityInfo, severityWarn, sevError} // in the order of model.Severity
)

// defaultUpdateInterval leaves time to read a line.
const defaultUpdateInterval = 3 * time.Second

// defaultRetry never gives up: what comes meanwhile waits in the queue, and then with the sender.
var defaultRetry = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 1.5, RandomizationFactor: 0.5, MaxInterval: 5 * time.Second,
}

// defaultQueueBytes has room for thousands of findings.
const defaultQueueBytes = 16 << 20

func newDefaultConfig() *Config {
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize, queue.NumConsumers = exporterhelper.RequestSizerTypeBytes, defaultQueueBytes, 1
	return &Config{
		Path: toStdout, Format: formatBlock, Color: colorAuto, MinSeverity: severityInfo,
		Updates: updatesChanged, UpdateInterval: defaultUpdateInterval,
		Queue: configoptional.Some(queue), Retry: defaultRetry,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("check path: got none; want stdout, stderr, or a file in a directory that exists"))
	}
	if c.Width != 0 && (c.Width < report.MinWidth || c.Width > report.MaxWidth) {
		errs = append(errs, fmt.Errorf("check width: got %d; want %d to %d, or 0", c.Width, report.MinWidth, report.MaxWidth))
	}
	if c.UpdateInterval < 0 {
		errs = append(errs, fmt.Errorf("check update_interval: got %v; want 0s or more", c.UpdateInterval))
	}
	if q := c.Queue.Get(); q != nil && q.NumConsumers > 1 {
		errs = append(errs, fmt.Errorf("check sending_queue::num_consumers: got %d; want 1, since findings are written in their order", q.NumConsumers))
	}
	for _, s := range []struct {
		key, value string
		of         []string
	}{{"format", c.Format, formats}, {"color", c.Color, colors}, {"min_severity", c.MinSeverity, severities}, {"updates", c.Updates, updates}} {
		if !slices.Contains(s.of, s.value) {
			errs = append(errs, fmt.Errorf("check %s: got %q; want %s", s.key, s.value, strings.Join(s.of, ", ")))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) minSeverity() model.Severity {
	return model.Severity(slices.Index(severities, c.MinSeverity))
}
