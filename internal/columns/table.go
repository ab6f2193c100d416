// SPDX-License-Identifier: Apache-2.0

package columns

import "github.com/lockstep-otel/lockstep/internal/model"

const (
	inUnits   = "time_unit_ns"
	inSeconds = "s"
	inBytes   = "B"
)

// rankColumns are the columns of a rank's identity.
var rankColumns = []column{
	text("job_id", func(r *row) *string { return &r.rank.JobID }),
	text("job_name", func(r *row) *string { return &r.rank.JobName }),
	text("incarnation", func(r *row) *string { return &r.rank.Incarnation }),
	integer("rank", delta, "", func(r *row) *int64 { return &r.rank.Rank }),
	maybe("local_rank", delta, "", func(r *row) *optionalInt { return &r.rank.LocalRank }),
	maybe("world_size", delta, "", func(r *row) *optionalInt { return &r.rank.WorldSize }),
	maybe("dp_rank", delta, "", func(r *row) *optionalInt { return &r.rank.Parallel.DP }),
	maybe("pp_rank", delta, "", func(r *row) *optionalInt { return &r.rank.Parallel.PP }),
	maybe("tp_rank", delta, "", func(r *row) *optionalInt { return &r.rank.Parallel.TP }),
	maybe("cp_rank", delta, "", func(r *row) *optionalInt { return &r.rank.Parallel.CP }),
	maybe("ep_rank", delta, "", func(r *row) *optionalInt { return &r.rank.Parallel.EP }),
	text("host_name", func(r *row) *string { return &r.rank.HostName }),
	text("host_id", func(r *row) *string { return &r.rank.HostID }),
	text("hw_id", func(r *row) *string { return &r.rank.HWID }),
	maybe("process_pid", delta, "", func(r *row) *optionalInt { return &r.rank.PID }),
	text("rank_clock_id", func(r *row) *string { return &r.rank.ClockID }),
	maybe("clock_epoch", delta, "ns", func(r *row) *optionalInt { return &r.rank.ClockEpoch }),
}

// opColumns are the columns of an operation. The start is before what is counted from it.
var opColumns = []column{
	text("kind", func(r *row) *model.OpKind { return &r.op.Kind }),
	text("name", func(r *row) *string { return &r.op.Name }),
	text("key", func(r *row) *string { return &r.op.Key }),
	integer("op_seq", delta, "", func(r *row) *int64 { return &r.op.Seq }),
	unitColumn(),
	startColumn(),
	durationColumn(),
	text("clock_id", func(r *row) *string { return &r.op.ClockID }),
	boolean("end_inferred", func(r *row) *bool { return &r.op.EndInferred }),
	maybe("step", delta, "", func(r *row) *optionalInt { return &r.op.Step }),
	text("phase", func(r *row) *string { return &r.op.Phase }),
	maybe("op_group", delta, "", func(r *row) *optionalInt { return &r.op.Group }),
	boolean("graph_captured", func(r *row) *bool { return &r.op.GraphCaptured }),
	maybe("work_bytes", repeated, inBytes, func(r *row) *optionalInt { return &r.op.WorkBytes }),
	maybe("work_tokens", repeated, "", func(r *row) *optionalInt { return &r.op.WorkTokens }),
	text("work_grid", func(r *row) *string { return &r.op.WorkGrid }),
	maybe("stream_id", delta, "", func(r *row) *optionalInt { return &r.op.Stream }),
	maybe("thread_id", delta, "", func(r *row) *optionalInt { return &r.op.ThreadID }),
	maybe("correlation_id", delta, "", func(r *row) *optionalInt { return &r.op.Correlation }),
	sinceColumn("launch_lead", func(r *row) *optionalInt { return &r.op.Launch }),
	maybe("microbatch", delta, "", func(r *row) *optionalInt { return &r.op.Microbatch }),
	maybe("model_chunk", delta, "", func(r *row) *optionalInt { return &r.op.ModelChunk }),
	maybe("step_ops", delta, "", func(r *row) *optionalInt { return &r.op.StepOps }),

	text("comm_id", func(r *row) *string { return &r.op.Comm.ID }),
	text("comm_name", func(r *row) *string { return &r.op.Comm.Name }),
	text("comm_digest", func(r *row) *string { return &r.op.Comm.Digest }),
	maybe("comm_size", repeated, "", func(r *row) *optionalInt { return &r.op.Comm.Size }),
	maybe("comm_rank", repeated, "", func(r *row) *optionalInt { return &r.op.Comm.Rank }),
	text("collective_name", func(r *row) *string { return &r.op.Collective.Name }),
	maybe("collective_seq", delta, "", func(r *row) *optionalInt { return &r.op.Collective.Seq }),
	text("collective_seq_scope", func(r *row) *model.SeqScope { return &r.op.Collective.SeqScope }),
	maybe("collective_bytes", repeated, inBytes, func(r *row) *optionalInt { return &r.op.Collective.Bytes }),
	text("collective_dtype", func(r *row) *string { return &r.op.Collective.DType }),
	maybe("collective_root", repeated, "", func(r *row) *optionalInt { return &r.op.Collective.Root }),
	text("collective_algo", func(r *row) *string { return &r.op.Collective.Algo }),
	text("collective_proto", func(r *row) *string { return &r.op.Collective.Proto }),
	maybe("collective_channels", repeated, "", func(r *row) *optionalInt { return &r.op.Collective.Channels }),
	text("collective_state", func(r *row) *string { return &r.op.Collective.State }),
	maybe("peer", repeated, "", func(r *row) *optionalInt { return &r.op.Peer }),
	maybe("peer_local", repeated, "", func(r *row) *optionalInt { return &r.op.PeerLocal }),

	number("wait_gpu", func(r *row) *optionalFloat { return &r.op.Waits.GPU }),
	number("wait_peer", func(r *row) *optionalFloat { return &r.op.Waits.Peer }),
	number("wait_wire", func(r *row) *optionalFloat { return &r.op.Waits.Wire }),
	number("wait_flush", func(r *row) *optionalFloat { return &r.op.Waits.Flush }),
	maybe("wait_wire_steps", delta, "", func(r *row) *optionalInt { return &r.op.Waits.WireSteps }),
	long("stack", func(r *row) *string { return &r.op.Stack }),
	linksColumn(),
	count("links_dropped", func(r *row) *int64 { return &r.op.LinksDropped }),

	number("clock_offset", func(r *row) *optionalFloat { return &r.op.Clock.Offset }),
	number("clock_bound", func(r *row) *optionalFloat { return &r.op.Clock.Bound }),
	number("clock_sigma", func(r *row) *optionalFloat { return &r.op.Clock.Sigma }),
	text("clock_timeline", func(r *row) *string { return &r.op.Clock.Timeline }),
	sinceColumn("clock_shift", func(r *row) *optionalInt { return &r.op.Clock.RawStart }),
	boolean("clock_stepped", func(r *row) *bool { return &r.op.Clock.Stepped }),
	text("causality_verdict", func(r *row) *string { return &r.op.Clock.Verdict }),
	number("causality_magnitude", func(r *row) *optionalFloat { return &r.op.Clock.Magnitude }),
	text("straggler_class", func(r *row) *string { return &r.op.Straggler.Class }),
	number("straggler_excess", func(r *row) *optionalFloat { return &r.op.Straggler.Excess }),
	maybe("wait_owed_to", delta, "", func(r *row) *optionalInt { return &r.op.Straggler.OwedTo }),
	number("wait_suffered", func(r *row) *optionalFloat { return &r.op.Straggler.Suffered }),
}

// summaryColumns are the columns of the summary that a rank's step has.
var summaryColumns = []column{
	share("summary_compute", func(s *model.Summary) *float64 { return &s.Compute }),
	share("summary_compute_overlapped", func(s *model.Summary) *float64 { return &s.ComputeOverlapped }),
	share("summary_transfer", func(s *model.Summary) *float64 { return &s.Transfer }),
	share("summary_wait", func(s *model.Summary) *float64 { return &s.Wait }),
	share("summary_launch_idle", func(s *model.Summary) *float64 { return &s.LaunchIdle }),
	share("summary_dependency_idle", func(s *model.Summary) *float64 { return &s.DependencyIdle }),
	share("summary_copy", func(s *model.Summary) *float64 { return &s.Copy }),
	total("summary_ops", func(s *model.Summary) *int64 { return &s.Ops }),
	total("summary_collectives", func(s *model.Summary) *int64 { return &s.Collectives }),
	histogramsColumn(),
}

// table is all columns in the order of the file.
var table = concat(rankColumns, opColumns, summaryColumns)

func concat(parts ...[]column) (all []column) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
