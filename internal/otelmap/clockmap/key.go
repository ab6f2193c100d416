// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Key names what a clock event replaces, as docs/format/kafka.md has it: the event before of the same two clocks and
// source, or the model before of the same clock. It is "" where the record is another event, or does not name its clocks.
func Key(lr plog.LogRecord) string {
	r := reader{m: lr.Attributes()}
	var fields []string
	switch lr.EventName() {
	case semconv.EventClockEdge:
		fields = []string{r.name(semconv.EdgeSrc, model.CheckClockName), r.name(semconv.EdgeDst, model.CheckClockName), r.word(semconv.EdgeSource)}
		if r.truth(semconv.EdgePrompt) {
			fields = append(fields, "prompt")
		}
	case semconv.EventClockModel:
		fields = []string{r.name(semconv.ClockID, model.CheckClockName)}
	default:
		return ""
	}
	if r.err != nil {
		return ""
	}
	return lr.EventName() + "\x00" + strings.Join(fields, "\x00") + "\x00"
}
