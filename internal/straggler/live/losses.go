// SPDX-License-Identifier: Apache-2.0

package live

import "github.com/lockstep-otel/lockstep/internal/straggler"

// Loss is something that limits, deadlines or bad input have cost.
type Loss struct {
	Count int64
	What  string // in words, and what to do about it
}

// Losses returns what was lost between two readings of the counters: a conclusion drawn from a part must not
// pass for one from the whole.
func Losses(now, before *straggler.Stats) (lost []Loss) {
	for _, l := range []struct {
		now, before int64
		what        string
	}{
		{now.LateOps, before.LateOps, "operations came after their step had been analysed; raise deadline where ranks deliver far apart, and look whether several processes say that they are one rank"},
		{now.OpsDropped, before.OpsDropped, "operations beyond max_ops_per_rank_step were left out"},
		{now.StepsEvicted, before.StepsEvicted, "steps were analysed before they were complete, because of max_open_steps, max_open_ops or max_memory_mib"},
		{now.RanksRefused, before.RanksRefused, "batches of ranks beyond max_ranks were left out"},
		{now.WorldsCapped, before.WorldsCapped, "batches stated a world size beyond max_ranks"},
		{now.JobsEvicted, before.JobsEvicted, "jobs were given up, because of max_jobs or max_memory_mib"},
		{now.OpsWithoutStep, before.OpsWithoutStep, "operations belong to no step"},
		{now.OpsWithoutRank, before.OpsWithoutRank, "operations belong to no rank"},
		{now.OpsUnsound, before.OpsUnsound, "operations end before they start, or last longer than a day, and were left out"},
		{now.OpsOfTwins, before.OpsOfTwins, "operations came from a second process that says it is a rank which another has, and were left out; give each job its own lockstep.job.id"},
		{now.OpsMiscounted, before.OpsMiscounted, "collectives have other numbers on one rank than on the others; does its recording begin later, or does a rank skip one?"},
		{now.LaunchesContradicted, before.LaunchesContradicted, "steps of ranks have operations that begin before their launch, and are judged without launches; are the clocks of host and device converted alike?"},
		{now.HostsContradicted, before.HostsContradicted, "steps of ranks have operations that begin before them or were launched outside of them, and are judged without what their host's clock stamped; does another clock stamp host than device?"},
		{now.StepsOffUnit, before.StepsOffUnit, "steps of ranks lie before 1990 or after 2100, or last less than a microsecond; want stamps in nanoseconds since 1970: are they microseconds or milliseconds?"},
		{now.WorldsContradicted, before.WorldsContradicted, "batches state another world size than others do, or fewer ranks than there are; set it to how many ranks the job has"},
		{now.StepsForgotten, before.StepsForgotten, "steps left the window before their time, because of max_window_members or max_memory_mib"},
		{now.PlacesOverflowed, before.PlacesOverflowed, "operations share one key, since there are too many distinct ones; is a number or an address part of their names?"},
		{now.FindingsWithheld, before.FindingsWithheld, "findings were not opened, since too many are open"},
		{now.ConclusionsDropped, before.ConclusionsDropped, "places stood out beside too many others, and were not looked into"},
	} {
		if n := l.now - l.before; n > 0 {
			lost = append(lost, Loss{n, l.what})
		}
	}
	return lost
}
