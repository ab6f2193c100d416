// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadata"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadatatest"
)

// bench is a receiver whose server is the test's own.
type bench struct {
	*carrier
	t    *testing.T
	http *httptest.Server
	sink *consumertest.LogsSink
	tel  *componenttest.Telemetry
	now  time.Time
}

func start(t *testing.T, change func(*Config), next consumer.Logs) *bench {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.Node = "node7"
	if change != nil {
		change(cfg)
	}
	b := &bench{t: t, sink: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry(), now: time.Now()}
	if next == nil {
		next = b.sink
	}
	var err error
	b.carrier, err = newCarrier(metadatatest.NewSettings(b.tel), cfg, next)
	require.NoError(t, err)
	b.told = b.now
	b.http = httptest.NewServer(b.handler())
	t.Cleanup(func() {
		b.http.Close()
		require.NoError(t, b.Shutdown(context.Background()))
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

func (b *bench) post(body string) (int, string) {
	b.t.Helper()
	return b.ask("application/json", body)
}

func (b *bench) ask(kind, body string) (int, string) {
	b.t.Helper()
	r, err := http.Post(b.http.URL+path, kind, strings.NewReader(body))
	require.NoError(b.t, err)
	defer func() { _ = r.Body.Close() }()
	data, err := io.ReadAll(r.Body)
	require.NoError(b.t, err)
	return r.StatusCode, string(data)
}

func (b *bench) messages(outcome string) (n int64) {
	m, err := b.tel.GetMetric("otelcol_receiver_epoch_commit_messages")
	require.NoError(b.t, err)
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if v, _ := dp.Attributes.Value(attribute.Key("outcome")); v.AsString() == outcome {
			n += dp.Value
		}
	}
	return n
}

// says is a message of a domain with one save.
func says(domain string, sequence int, epoch int, state string) string {
	return fmt.Sprintf(`{"version": 1, "job": "job", "domain": %q, "domains": 2, "life": "a", "sequence": %d,
		"slots": [{"epoch": %d, "attempt": "e", "state": %q}]}`, domain, sequence, epoch, state)
}

func TestAnswers(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxJobs = 1 }, nil)
	code, text := b.post(says("rank 0", 1, 5, "tentative"))
	assert.Equal(t, http.StatusOK, code)
	assert.JSONEq(t, `{"version": 1, "domains": 2, "heard": 1, "session": "", "joined": 0, "recoverable": null, "lost": null,
		"saves": [{"epoch": 5, "attempt": "e", "tentative": 1, "reflecting": 0, "committed": 0}]}`, text)
	for _, c := range []struct {
		kind, body, want, outcome string
		code                      int
	}{
		{"application/json", `{`, "parse message: unexpected end", messageInvalid, 400},
		{"text/plain", says("rank 0", 1, 5, "tentative"), `check Content-Type: got \"text/plain\"; want application/json`, messageInvalid, 400},
		{"application/json", strings.Repeat(" ", maxBody+1), "read message: got more than 16384 bytes", messageInvalid, 400},
		{"application/json", strings.ReplaceAll(says("rank 0", 1, 5, "tentative"), `"job": "job"`, `"job": "other"`), "full: got one job more; want at most 1", messageFull, 503},
	} {
		was := b.messages(c.outcome)
		code, text := b.ask(c.kind, c.body)
		assert.Equal(t, c.code, code)
		assert.Contains(t, text, c.want)
		assert.Equal(t, was+1, b.messages(c.outcome))
	}
	code, _ = b.post(says("rank 1", 1, 5, "tentative"))
	require.Equal(t, http.StatusOK, code)
	code, text = b.post(says("rank 2", 1, 5, "tentative"))
	assert.Equal(t, http.StatusConflict, code)
	assert.Contains(t, text, `check domain: got \"rank 2\"; want one of the 2`)
	assert.EqualValues(t, 2, b.messages(messageAnswered))
}

func TestPagesOfOthersAreRefused(t *testing.T) {
	b := start(t, nil, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.http.URL+path, strings.NewReader(says("rank 0", 1, 5, "tentative")))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://elsewhere")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestJobsArePrinted(t *testing.T) {
	b := start(t, nil, nil)
	b.post(says("rank 0", 1, 5, "reflecting"))
	r, err := http.Get(b.http.URL + path)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"job":"job","domains":2,"heard":1,"session":"","joined":0,"saves":[{"epoch":5,"attempt":"e","tentative":1,"reflecting":1,"committed":0}]`)
}

func TestWaiting(t *testing.T) {
	wait := strings.TrimSuffix(says("rank 0", 1, 5, "tentative"), "}") + `, "wait": {"for": "tentative", "epoch": 5, "seconds": 10, "missing": true}}`
	answered := func(b *bench) chan string {
		out := make(chan string)
		go func() {
			_, text := b.post(wait)
			out <- text
		}()
		require.Eventually(t, func() bool { return b.waiting.Load() == 1 }, time.Minute, time.Millisecond)
		return out
	}
	t.Run("until it has come", func(t *testing.T) {
		b := start(t, nil, nil)
		out := answered(b)
		b.post(says("rank 1", 1, 5, "tentative"))
		assert.Contains(t, <-out, `"tentative":2`)
	})
	t.Run("until the collector ends", func(t *testing.T) {
		b := start(t, nil, nil)
		out := answered(b)
		b.cancel()
		assert.Contains(t, <-out, `"missing_count":1`)
	})
	t.Run("with no more than there may be domains", func(t *testing.T) {
		b := start(t, func(c *Config) { c.MaxDomains = 2 }, nil)
		b.waiting.Store(2)
		_, text := b.post(wait)
		assert.Contains(t, text, `"missing_count":1`)
		assert.EqualValues(t, 2, b.waiting.Load())
		m, err := b.tel.GetMetric("otelcol_receiver_epoch_commit_messages_hurried")
		require.NoError(t, err)
		assert.EqualValues(t, 1, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	})
}

func observations(t *testing.T, logs []plog.Logs) (list []model.EpochObservation) {
	t.Helper()
	for _, ld := range logs {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				o, ok, err := epochmap.LogToObservation(rl.Resource(), lr)
				require.True(t, ok)
				require.NoError(t, err)
				list = append(list, o)
			}
		}
	}
	return list
}

// What is emitted is judged by the engine of the epoch connector as it is.
func TestObservations(t *testing.T) {
	b := start(t, nil, nil)
	e := epoch.New(epoch.Config{Jobs: 10, Generations: 10, Saves: 10, Domains: 100, Observers: 10})
	judge := func(save int64) epoch.Verdict {
		b.now = b.now.Add(time.Second)
		b.tick(b.now)
		for _, o := range observations(t, b.sink.AllLogs()) {
			e.Observe(&o)
		}
		b.sink.Reset()
		return e.Judge("job", "2 ranks", save).Verdict
	}
	b.post(says("rank 0", 1, 5, "tentative"))
	assert.Equal(t, epoch.Converging, judge(5), "of one rank the part is there")
	b.post(says("rank 1", 1, 5, "tentative"))
	b.post(says("rank 0", 2, 5, "reflecting"))
	b.post(says("rank 1", 2, 5, "reflecting"))
	assert.Equal(t, epoch.Converging, judge(5), "nobody says that all know")
	b.post(says("rank 0", 3, 5, "committed"))
	assert.Equal(t, epoch.Converged, judge(5), "rank 1 recovers it, too, told of it or not")
	b.post(says("rank 1", 3, 5, "committed"))
	assert.Equal(t, epoch.Converged, judge(5))
	b.post(says("rank 0", 4, 7, "committed"))
	b.post(says("rank 1", 4, 7, "committed"))
	assert.Equal(t, epoch.Converged, judge(7))
	assert.Equal(t, epoch.Revoked, judge(5), "retention")

	b.now = b.now.Add(b.cfg.Heartbeat)
	b.tick(b.now)
	all := observations(t, b.sink.AllLogs())
	require.Len(t, all, 4)
	assert.Equal(t, model.DomainPart, all[0].Domain.Kind)
	o := all[1]
	assert.Equal(t, []any{"job", "2 ranks", int64(7), model.DomainCommit, int64(2), "node7 epoch_commit", b.life}, []any{o.JobID, o.Generation, o.Save, o.Domain.Kind, o.Of, o.Observer, o.Life})
	assert.Equal(t, model.Some(int64(7)), o.Epoch)
	b.sink.Reset()

	b.post(says("rank 0", 9, 7, "committed"))
	b.tick(b.now)
	assert.Empty(t, b.sink.AllLogs(), "nothing is new")
}

func TestRefusedObservationsAreToldAgain(t *testing.T) {
	refuse, sink := true, &consumertest.LogsSink{}
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if refuse {
			return errors.New("no")
		}
		return sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b := start(t, nil, next)
	b.post(says("rank 0", 1, 5, "tentative"))
	b.tick(b.now)
	b.post(says("rank 0", 2, 5, "reflecting"))
	b.tick(b.now)
	refuse = false
	b.tick(b.now)
	all := observations(t, sink.AllLogs())
	require.Len(t, all, 4)
	var states []model.DomainState
	for _, o := range all {
		states = append(states, o.State)
	}
	assert.Equal(t, []model.DomainState{model.DomainCommitted, model.DomainTentative, model.DomainCommitted, model.DomainReflecting}, states, "of part and commit")
}

// Where the next component takes nothing for long, nothing is lost but what was told in between.
func TestRefusedForLong(t *testing.T) {
	refuse, sink := true, &consumertest.LogsSink{}
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if refuse {
			return errors.New("no")
		}
		return sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b := start(t, nil, next)
	b.post(says("rank 0", 1, 5, "tentative"))
	b.post(says("rank 1", 1, 5, "tentative"))
	b.tick(b.now)
	b.post(says("rank 0", 2, 6, "tentative"))
	for range 10 {
		b.now = b.now.Add(b.cfg.Heartbeat)
		b.tick(b.now)
		assert.Len(t, b.pending, 2, "what the board knows does not pile up")
	}
	refuse = false
	b.tick(b.now)
	last := map[string]model.DomainState{}
	for _, o := range observations(t, sink.AllLogs()) {
		last[fmt.Sprint(o.Domain.Kind, " of ", o.Domain.ID, ", ", o.Save)] = o.State
	}
	assert.Equal(t, map[string]model.DomainState{
		"part of rank 0, 5": model.DomainAbsent, "commit of rank 0, 5": model.DomainAbsent, "part of rank 1, 5": model.DomainCommitted, "commit of rank 1, 5": model.DomainTentative,
		"part of rank 0, 6": model.DomainCommitted, "commit of rank 0, 6": model.DomainTentative, "part of rank 1, 6": model.DomainAbsent, "commit of rank 1, 6": model.DomainAbsent,
	}, last)
}

func TestWhatIsRefusedToTheEndIsCounted(t *testing.T) {
	b := start(t, nil, consumertest.NewErr(errors.New("no")))
	for _, job := range []string{"job", "another", "third"} {
		b.post(strings.Replace(says("rank 0", 1, 5, "tentative"), `"job": "job"`, `"job": "`+job+`"`, 1))
	}
	require.NoError(t, b.Shutdown(t.Context()))
	m, err := b.tel.GetMetric("otelcol_receiver_epoch_commit_observations_dropped")
	require.NoError(t, err)
	assert.EqualValues(t, 6, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

// A client that does not send what it announced keeps nobody from ending.
func TestASlowClientHoldsUpNoEnd(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint = "127.0.0.1:0"
	c, err := newCarrier(receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	logs, printed := observer.New(zap.InfoLevel)
	c.set.Logger, c.grace = zap.New(logs), 100*time.Millisecond
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	address := printed.FilterMessageSnippet("Listen").All()[0].ContextMap()["address"].(string)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path)
	require.NoError(t, err)
	time.Sleep(50 * time.Millisecond) // it is read as far as it goes
	ended := make(chan error)
	go func() { ended <- c.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}
