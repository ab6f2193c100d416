// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// What came of a look.
const (
	lookTold       = "told"
	lookNothingNew = "nothing_new"
	lookRefused    = "refused"
)

// What was not read, or left out.
const (
	faultUnreadable = "unreadable"
	faultUnits      = "units"
)

// The sources, each of which may hang by itself.
const (
	sourceFiles   = "files of the system"
	sourceSMI     = "nvidia-smi"
	sourceManager = "nv-fabricmanager"
	sourceRAS     = "NCCL's RAS"
)

// killed is how much longer than a program may take its end is waited for.
const killed = 5 * time.Second

// look looks once: at files, and where it is time or the driver is another, at everything.
func (l *looker) look(now time.Time) {
	if l.ctx.Err() != nil {
		return
	}
	l.health.Set(l.cfg.RootPath, health.Readable(l.cfg.RootPath))
	reads := []*fleet.Read{l.ask(sourceFiles, func() *fleet.Read {
		files := l.cfg.files()
		return files.Read()
	})}
	driver := loaded(reads[0])
	all := now.Sub(l.all) >= l.cfg.Heartbeat || driver != l.driver
	if all {
		l.all, l.driver = now, driver
		if l.cfg.NvidiaSMI != "" {
			reads = append(reads, l.ask(sourceSMI, func() *fleet.Read { return fleet.SMI(l.ctx, l.command(l.cfg.NvidiaSMI)) }))
		}
		if l.cfg.FabricManager != "" {
			reads = append(reads, l.ask(sourceManager, func() *fleet.Read { return fleet.FabricManager(l.ctx, l.command(l.cfg.FabricManager)) }))
		}
		if l.cfg.NCCLRAS != "" {
			reads = append(reads, l.ask(sourceRAS, func() *fleet.Read { return fleet.NCCL(l.ctx, l.cfg.NCCLRAS, l.cfg.Timeout) }))
		}
	}
	if l.ctx.Err() != nil {
		return
	}
	read := fleet.Join(reads...)
	obs, facts := l.teller.Tell(&read, all, semconv.FactSourceFleet, now)
	l.count(&read, l.tell(obs, facts), all)
}

func (l *looker) command(path string) fleet.Command {
	return fleet.Command{Path: path, Timeout: l.cfg.Timeout}
}

// loaded is the version of the driver that is loaded, empty where none is.
func loaded(r *fleet.Read) string {
	for _, v := range r.Versions {
		if v.Domain == model.VersionKernelDriver {
			return v.Version
		}
	}
	return ""
}

// ask reads one source, and goes on without it where it hangs: it is left alone until it comes back.
func (l *looker) ask(source string, read func() *fleet.Read) *fleet.Read {
	r, err := frwatch.Do(l.ctx, &l.calls, source, l.cfg.Timeout+killed, read)
	if err != nil {
		return &fleet.Read{Problems: []string{err.Error()}}
	}
	return r
}

// tell hands on what is to be told.
func (l *looker) tell(obs []model.VersionObservation, facts []model.NodeFact) (outcome string) {
	n := len(obs) + len(facts)
	if n == 0 {
		return lookNothingNew
	}
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	versionmap.NodeToResource(l.host.Name, l.host.ID, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	sl.LogRecords().EnsureCapacity(n)
	for i := range obs {
		versionmap.VersionToLog(&obs[i], sl.LogRecords().AppendEmpty())
	}
	for i := range facts {
		versionmap.FactToLog(&facts[i], sl.LogRecords().AppendEmpty())
	}
	o := l.next.Once(l.ctx, ld)
	if o.Err == nil {
		return lookTold
	}
	if o.Kept { // else the next heartbeat reports it, as all is
		l.teller.Refused()
		l.all = time.Time{} // what programs said is told again, too
	}
	return lookRefused
}

// count adds what came of a look, and tells the log where what can not be read is other than it was.
func (l *looker) count(r *fleet.Read, outcome string, all bool) {
	l.telemetry.ReceiverFleetVersionLooks.Add(l.ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	for reason, n := range map[string]int{faultUnreadable: len(r.Problems), faultUnits: r.LeftOut} {
		if n > 0 {
			l.telemetry.ReceiverFleetVersionFaults.Add(l.ctx, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
		}
	}
	problems := strings.Join(r.Problems, "; ")
	if !all || problems == l.said { // programs are asked with the whole only
		return
	}
	l.said = problems
	if problems != "" {
		l.log.Warn("Some versions of this node can not be read", zap.String("problems", problems))
		return
	}
	l.log.Info("All versions of this node can be read again")
}
