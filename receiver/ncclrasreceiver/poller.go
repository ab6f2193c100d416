// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/receiver/ncclrasreceiver/internal/metadata"
)

// What came of an answer.
const (
	answerTold     = "told"
	answerQuiet    = "nothing_new"
	answerNone     = "nobody_listens"
	answerFailed   = "failed"
	answerTextOnly = "text_only"
	answerNoWorld  = "no_world"
)

// What was left out.
const (
	faultApart   = "members_unknown"
	faultEvicted = "jobs_forgotten"
)

// poller asks and hands on what comes of it. One goroutine, the interval's, uses all but the
// consumers' fields, which are set before.
type poller struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	logs      *deliver.Sender[plog.Logs] // nil where no pipeline takes them
	metrics   *deliver.Sender[pmetric.Metrics]

	interval *hub.Interval
	//nolint:containedctx // the interval's calls have no context of their own
	ctx    context.Context
	cancel context.CancelFunc

	tracker ras.Tracker
	evicted int64
	series  measures
	said    map[string]string // by endpoint, what its log line said last
}

func newPoller(set receiver.Settings, cfg *Config) (*poller, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "tcp", Format: "nccl_ras"})
	if err != nil {
		return nil, err
	}
	p := &poller{
		cfg: cfg, log: set.Logger, telemetry: telemetry, out: out, said: map[string]string{}, series: newMeasures(cfg.MaxSeries),
		tracker: ras.Tracker{Interval: cfg.PollInterval, Heartbeat: cfg.Heartbeat},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.interval = hub.NewInterval(cfg.PollInterval, p.poll)
	return p, nil
}

func (p *poller) logsTo(next consumer.Logs) {
	p.logs = p.out.Logs(next, &deliver.Counts{
		What: "States of ranks", Again: true, LogEvery: deliver.RepeatEvery,
		Emitted: p.telemetry.ReceiverNcclRasEventsEmitted.Add, Dropped: p.telemetry.ReceiverNcclRasEventsDropped.Add,
	})
}

func (p *poller) stop(ctx context.Context) error {
	_, stopped := p.out.Stop(ctx)
	p.cancel()
	p.interval.Stop(p.telemetry.Shutdown)
	return stopped()
}

// answer is what came from one endpoint.
type answer struct {
	endpoint string
	status   *ras.Status
	err      error
	at       time.Time
}

// poll asks all endpoints at once, and takes their answers as they come: who does not answer
// holds nobody up.
func (p *poller) poll(time.Time) {
	answers := make(chan answer, len(p.cfg.Endpoints)) // nobody waits to put one in
	for _, e := range p.cfg.Endpoints {
		go func() {
			c := ras.Client{Address: e, Wait: p.cfg.Wait, Timeout: p.cfg.Timeout, MaxBytes: p.cfg.MaxBytes}
			status, err := c.Status(p.ctx)
			answers <- answer{e, status, err, time.Now()}
		}()
	}
	for range p.cfg.Endpoints {
		a := <-answers // each comes, at the latest when its timeout is over
		if p.ctx.Err() != nil {
			continue
		}
		what, err := p.take(&a)
		p.telemetry.ReceiverNcclRasAnswers.Add(p.ctx, 1, reason(what))
		p.say(a.endpoint, what, err)
	}
	if p.ctx.Err() != nil {
		return
	}
	if n := p.tracker.Evicted(); n > p.evicted {
		p.telemetry.ReceiverNcclRasFaults.Add(p.ctx, n-p.evicted, reason(faultEvicted))
		p.evicted = n
	}
}

// take hands on what an answer says; what says what came of it.
func (p *poller) take(a *answer) (what string, err error) {
	switch {
	case errors.Is(a.err, ras.ErrTextOnly):
		return answerTextOnly, a.err
	case ras.Nobody(a.err):
		return answerNone, a.err
	case a.err != nil:
		return answerFailed, a.err
	}
	if len(a.status.Comms) == 0 {
		return answerQuiet, nil
	}
	what = answerQuiet
	layouts := ras.Layouts(a.status)
	parts := ras.Divide(layouts, a.status)
	for i, l := range layouts {
		o := ras.Origin{ID: p.cfg.JobID, Name: p.cfg.JobName, From: a.endpoint, At: a.at.UnixNano()}
		if o.ID != "" && (len(layouts) > 1 || !l.Named()) {
			o.ID += "/" + l.Hash() // its numbers are not the job's ranks
		}
		if told := p.takeJob(l.Job(parts[i], o), a.at); told && what != answerNoWorld {
			what = answerTold
		}
		if !l.Named() {
			what = answerNoWorld
		}
	}
	return what, nil
}

// takeJob hands on what an answer says of one job, and reports whether that was anything.
func (p *poller) takeJob(j *ras.Job, at time.Time) bool {
	if !j.Unnumbered { // else its numbers are no ranks
		p.measure(j, at)
	}
	if !p.tracker.Tell(j, at) {
		return false
	}
	if j.Apart > 0 {
		p.telemetry.ReceiverNcclRasFaults.Add(p.ctx, int64(j.Apart), reason(faultApart))
	}
	if p.tell(j).Kept { // the next heartbeat reports what is refused for good
		p.tracker.Refused(j)
	}
	return true
}

// say tells the log of what came of an answer where that is not what it was.
func (p *poller) say(endpoint, what string, err error) {
	kind := what
	if what == answerTold || what == answerQuiet {
		kind = "answers"
	}
	if p.said[endpoint] == kind {
		return
	}
	p.said[endpoint] = kind
	at := zap.String("endpoint", endpoint)
	switch kind {
	case "answers":
		p.log.Info("NCCL's RAS answers", at)
	case answerNone:
		p.log.Info("No NCCL process listens for its RAS", at, zap.Error(err))
	case answerNoWorld:
		p.log.Warn("No communicator has all processes: ranks are compared within communicators, and processes are named instead of ranks", at)
	default:
		p.log.Warn("NCCL's RAS gives no answer that can be used", at, zap.Error(err))
	}
}

// tell delivers states, absences and facts.
func (p *poller) tell(j *ras.Job) deliver.Outcome {
	if p.logs == nil {
		return deliver.Outcome{}
	}
	ld := plog.NewLogs()
	for i := range j.States {
		otelmap.AppendRankState(ld, &j.States[i])
	}
	for i := range j.Absent {
		of := j.Identity(&j.Absent[i])
		otelmap.AppendAbsence(ld, &of, &j.Absent[i].Absence)
	}
	for i := range j.Facts {
		otelmap.AppendFact(ld, &j.Facts[i])
	}
	return p.logs.Once(p.ctx, ld)
}

func reason(r string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r)))
}
