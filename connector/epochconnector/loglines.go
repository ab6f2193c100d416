// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/logline"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// LogLinesConfig is about lines of ordinary logs.
type LogLinesConfig struct {
	// Enabled: lines of logs are looked at.
	Enabled bool `mapstructure:"enabled"`
	// Silent is after how long without such a line a finding is closed.
	Silent time.Duration `mapstructure:"silent"`

	_ struct{}
}

func newDefaultLogLinesConfig() LogLinesConfig {
	return LogLinesConfig{Enabled: true, Silent: logline.NewDefaultConfig().Silent}
}

func (c *Config) lines() logline.Config {
	return logline.Config{Silent: c.LogLines.Silent, MaxEpisodes: c.MaxFindings}
}

// line reads a record of an ordinary log whose line reports that something mixed. Events of ours are none:
// they may quote such a line.
func (w *watches) line(of pcommon.Resource, lr plog.LogRecord) (int, feed, error) {
	text, ok := textOf(lr.Body())
	if !w.cfg.LogLines.Enabled || !ok || strings.HasPrefix(lr.EventName(), "lockstep.") {
		return foreign, nil, nil
	}
	hit, ok := logline.Recognise(text)
	if !ok {
		return foreign, nil, nil
	}
	m := of.Attributes()
	l := logline.Line{
		Time: int64(lr.Timestamp()), Text: text,
		JobID: attribute(m, semconv.JobID), JobName: attribute(m, semconv.ServiceName),
		HostID: attribute(m, semconv.HostID), Host: cmp.Or(attribute(m, semconv.HostName), attribute(m, "k8s.node.name")),
	}
	return 0, func(now time.Time) { w.lines.Take(&hit, &l, now) }, nil
}

// textOf is the line of a record: its body, or what a journal's or a structured record's body has of
// it.
func textOf(body pcommon.Value) (string, bool) {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return body.Str(), true
	case pcommon.ValueTypeMap:
		for _, name := range []string{"MESSAGE", "message", "msg", "log"} {
			if v, ok := body.Map().Get(name); ok && v.Type() == pcommon.ValueTypeStr {
				return v.Str(), true
			}
		}
	default:
	}
	return "", false
}

// maxAttribute bounds a name of a resource, in bytes: a longer one names nothing.
const maxAttribute = 256

func attribute(m pcommon.Map, name string) string {
	v, ok := m.Get(name)
	if !ok || v.Type() != pcommon.ValueTypeStr || len(v.Str()) > maxAttribute {
		return ""
	}
	return v.Str()
}
