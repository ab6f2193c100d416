// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
)

// told are feeds of what receivers report of live jobs: a fault comes, stays and goes, and comes
// again, so that findings open, change, close and open again.
var told = []struct {
	name  string
	write func(f *feed)
}{
	{"hang", tellHang},
	{"clocks", tellClocks},
	{"saves", tellSaves},
	{"versions", tellVersions},
	{"resumes", tellResumes},
	{"fingerprints", tellFingerprints},
	{"log lines", tellLines},
	{"everything", func(f *feed) {
		for _, tell := range []func(*feed){tellHang, tellClocks, tellSaves, tellVersions, tellResumes, tellFingerprints, tellLines} {
			tell(f)
		}
	}},
}

func toldFeeds(dir string) (out places, err error) {
	for _, t := range told {
		to := filepath.Join(dir, "told", t.name)
		f := newFeed(to, generated.UnixNano())
		t.write(f)
		if err := f.close(); err != nil {
			return nil, err
		}
		out = append(out, place{name: "simulated live " + t.name, path: filepath.Join(to, feedName), kind: kindFeed, start: generated})
	}
	return out, nil
}

// at is a moment of a feed.
func at(d time.Duration) int64 { return generated.Add(d).UnixNano() }

const jobID = "job"

func rankOf(n, of int64) model.Rank {
	return model.Rank{
		JobName: "training", JobID: jobID, Incarnation: "life", Rank: n, WorldSize: model.Some(of),
		HostName: fmt.Sprint("node", n), HostID: fmt.Sprint("id-node", n), HWID: fmt.Sprint("GPU-", n),
	}
}

// tellHang has two ranks work, rank 1 not come for some minutes, twice, and work again.
func tellHang(f *feed) {
	seq, now := int64(0), 10*time.Second
	work := func(n int) {
		for range n {
			now += 100 * time.Millisecond
			for rank := range int64(2) {
				of := rankOf(rank, 2)
				f.traces(at(now)+rank, otelmap.OpsToTraces(&of, []model.Op{{
					Kind: model.KindCollective, Name: model.AllReduce, Start: at(now) - 1000, End: at(now), Comm: model.Comm{ID: "0xabc"},
					Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeCommFunc},
				}}))
			}
			seq++
		}
	}
	stand := func(d time.Duration) {
		since := at(now)
		for end := now + d; now < end; {
			now += 2 * time.Second
			ld := plog.NewLogs()
			for rank := range int64(2) {
				otelmap.AppendRankState(ld, standing(rank, seq, rank == 0, since, at(now)))
			}
			f.logs(at(now)+17, ld)
		}
	}
	work(150)
	stand(3 * time.Minute)
	work(100)
	stand(5 * time.Minute)
	work(100)
}

// standing is the state of a rank that has come to an operation, and is in it or not.
func standing(rank, seq int64, in bool, since, now int64) *model.RankState {
	s := &model.RankState{
		Rank: rankOf(rank, 2), Time: now, Source: model.StateRankEvents, Process: model.ProcessRunning,
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "0xabc", Name: "world"}, Members: []int64{0, 1}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(seq - 1), Completed: model.Some(seq - 1)}},
		}},
	}
	if in {
		s.Comms[0].Frontiers[0].Enqueued = model.Some(seq)
		s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: seq, Created: since}}
	}
	return s
}

// tellClocks has the clock of host a go ahead for some minutes, drift, and come back.
func tellClocks(f *feed) {
	for now := 13 * time.Second; now < 30*time.Minute; now += 10 * time.Second {
		skew, drift := int64(0), 0.0
		switch {
		case now > 5*time.Minute && now < 12*time.Minute:
			skew = 2_000_000
		case now > 18*time.Minute && now < 25*time.Minute:
			drift = 2e-4
			skew = int64(drift * float64(now-18*time.Minute))
		}
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("host.name", "node-a")
		rl.Resource().Attributes().PutStr("host.id", "a")
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		edge := func(src, dst string, offset int64, drift float64, source string) {
			clockmap.EdgeToLog(&model.ClockEdge{
				Src: src, Dst: dst, At: int64(now), Span: 2e9, Lower: offset - 1000, Upper: offset + 1000, Offset: offset, Sigma: 50,
				Drift: drift, DriftBound: 1e-8, Samples: 100, Source: source, Stamps: model.StampKernel,
			}, records.AppendEmpty())
		}
		unix := at(0)
		edge("host:a/1/raw", "host:a/1/realtime", unix+skew, drift, model.EdgePair)
		edge("host:b/1/raw", "host:b/1/realtime", unix, 0, model.EdgePair)
		edge("host:c/1/raw", "host:c/1/realtime", unix, 0, model.EdgePair)
		edge("host:a/1/raw", "host:b/1/raw", 0, 0, model.EdgeProbe)
		edge("host:a/1/raw", "host:c/1/raw", 0, 0, model.EdgeProbe)
		edge("host:b/1/raw", "host:c/1/raw", 0, 0, model.EdgeProbe)
		f.logs(at(now), ld)
	}
}

// tellSaves has observers report five saves: whole, mixed, partial, whole, and the newest whole
// one lost.
func tellSaves(f *feed) {
	const tentative, lost = 0, -1
	saves := []struct {
		from  time.Duration
		save  int64
		holds []int64
	}{
		{time.Minute, 100, []int64{100, 100, 100}},
		{5 * time.Minute, 200, []int64{200, 100, 200}},
		{20 * time.Minute, 300, []int64{300, tentative, 300}},
		{35 * time.Minute, 300, []int64{300, 300, 300}},
		{45 * time.Minute, 400, []int64{400, 400, 400}},
		{60 * time.Minute, 400, []int64{400, lost, 400}},
	}
	revision := int64(0)
	for now := time.Minute; now < 90*time.Minute; now += 5*time.Minute - 3*time.Second {
		newest := map[int64][]int64{}
		for _, s := range saves {
			if s.from <= now {
				newest[s.save] = s.holds
			}
		}
		revision++
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		epochmap.JobToResource(jobID, "training", rl.Resource())
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		for _, save := range []int64{100, 200, 300, 400} {
			for rank, holds := range newest[save] {
				o := model.EpochObservation{
					JobID: jobID, Generation: "3 ranks", Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)},
					State: model.DomainCommitted, Epoch: model.Some(holds), Observer: fmt.Sprint("node", rank), Revision: revision, Confidence: 1,
				}
				switch holds {
				case tentative:
					o.State, o.Epoch = model.DomainTentative, model.Optional[int64]{}
				case lost:
					o.State, o.Epoch = model.DomainAbsent, model.Some(save)
				}
				epochmap.ObservationToLog(&o, records.AppendEmpty())
			}
		}
		f.logs(at(now)+29, ld)
	}
}

// tellVersions has three nodes of a job run drivers that differ, until the third is updated.
func tellVersions(f *feed) {
	revision := int64(0)
	for now := 31 * time.Second; now < 100*time.Minute; now += 4 * time.Minute {
		revision++
		drivers := []string{"550.90.07", "550.90.07", "580.126.09"}
		if now > time.Hour {
			drivers[2] = drivers[0]
		}
		ld := plog.NewLogs()
		for i, v := range drivers {
			host := fmt.Sprint("node", i)
			rl := ld.ResourceLogs().AppendEmpty()
			versionmap.NodeToResource(host, "id-"+host, rl.Resource())
			versionmap.VersionToLog(&model.VersionObservation{
				Time: at(now), Domain: model.VersionKernelDriver, Version: v, Units: 1, Of: 1, Life: 1, Revision: revision,
			}, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
			otelmap.AppendRankState(ld, &model.RankState{
				Rank: rankOf(int64(i), 3), Source: model.StateRankEvents, Process: model.ProcessRunning, Time: at(now),
				Comms: []model.CommState{{Comm: model.Comm{ID: "0xdef", Name: "world"}, Backend: "nccl", Members: []int64{0, 1, 2}}},
			})
		}
		f.logs(at(now)+41, ld)
	}
}

// tellResumes has the ranks of three lives load states: mixed, alike, and mixed again.
func tellResumes(f *feed) {
	for life, steps := range [][]int64{{1200, 1200, 1100, 1200}, {1200, 1200, 1200, 1200}, {1300, 1200, 1300, 1300}} {
		now := time.Duration(life)*12*time.Minute + 2*time.Minute
		ld := plog.NewLogs()
		for rank, step := range steps {
			of := rankOf(int64(rank), int64(len(steps)))
			of.Incarnation = fmt.Sprint("life ", life)
			resumemap.Append(ld, &model.Resume{Rank: of, Time: at(now), Life: fmt.Sprint("process ", rank), Number: 1, Step: step})
		}
		f.logs(at(now)+53, ld)
	}
}

// tellFingerprints has replicas hash alike, differ, hash alike again, and differ of two.
func tellFingerprints(f *feed) {
	for i, hashes := range [][]uint64{{7, 7, 7}, {10, 10, 11}, {9, 9, 9}, {5, 6, 5}, {4, 4, 4}} {
		now := time.Duration(i)*7*time.Minute + 3*time.Minute
		ld := plog.NewLogs()
		for rank, hash := range hashes {
			of := rankOf(int64(rank), int64(len(hashes)))
			resumemap.AppendFingerprints(ld, &of, []model.Fingerprint{{
				Time: at(now), Life: fmt.Sprint("process ", rank), Step: int64(i+1) * 100, Hash: hash, Start: 64, Total: 1000, Group: "dp", Replicas: int64(len(hashes)),
			}})
		}
		f.logs(at(now)+61, ld)
	}
}

// tellLines has ordinary logs say that something mixed.
func tellLines(f *feed) {
	const megatron = "WARNING: on rank 3 found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration."
	const nvml = "Failed to initialize NVML: Driver/library version mismatch"
	for i, text := range []string{"step 7: loss 2.3", megatron, nvml, megatron} {
		now := time.Duration(i)*4*time.Minute + time.Minute
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("lockstep.job.id", jobID)
		rl.Resource().Attributes().PutStr("service.name", "training")
		rl.Resource().Attributes().PutStr("host.name", "node3")
		lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.Body().SetStr(text)
		lr.SetTimestamp(pcommon.Timestamp(at(now)))
		f.logs(at(now)+71, ld)
	}
}
