// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// trace writes a trace of the given events behind a header.
func trace(header string, events ...string) string {
	if header != "" {
		header += ","
	}
	return `{"schemaVersion":1,` + header + `"traceEvents":[` + strings.Join(events, ",\n") + `]}`
}

func x(cat, name string, tid, ts, dur any, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":77,"tid":%v,"ts":%v,"dur":%v,"args":{%s}}`, cat, name, tid, ts, dur, args)
}

// kernel writes a kernel and the call that launched it, 5 µs before.
func kernel(name string, corr int, ts float64, args string) string {
	if args != "" {
		args = "," + args
	}
	return x("cuda_runtime", "cudaLaunchKernel", 1, ts-5, 2, fmt.Sprintf(`"correlation":%d`, corr)) + "," +
		x("kernel", name, 7, ts, 3, fmt.Sprintf(`"stream":7,"correlation":%d,"External id":%d,"grid":[4, 1, 1]%s`, corr, corr+1000, args))
}

func parseText(t *testing.T, name, text string) *Trace {
	t.Helper()
	tr, err := Parse(t.Context(), strings.NewReader(text), name, DefaultOptions())
	require.NoError(t, err)
	invariants(t, tr)
	return tr
}

const rank3of8 = `"distributedInfo":{"backend":"nccl","rank":3,"world_size":8,"pg_count":2,"pg_config":[` +
	`{"pg_name":"0","pg_desc":"default_pg","backend_config":"cuda:nccl","pg_size":8,"ranks":[0,1,2,3,4,5,6,7]},` +
	`{"pg_name":"5","pg_desc":"mesh_tp","backend_config":"cuda:nccl","pg_size":4,"ranks":[1,3,5,7]}]}`

func collArgs(name string, seq int, rest string) string {
	return fmt.Sprintf(`"Collective name":%q,"In msg nelems":10,"Out msg nelems":10,"Group size":4,"dtype":"BFloat16",`+
		`"Process Group Name":"5","Process Group Description":"mesh_tp","Process Group Ranks":"[1, 3, 5, 7]","Seq":%d%s`, name, seq, rest)
}

func TestModernNCCL(t *testing.T) {
	tr := parseText(t, "x.json", trace(`"baseTimeNanoseconds":1000000000000,"host_name":"node7",`+rank3of8,
		x("user_annotation", "ProfilerStep#4", 1, 100, 200, ""),
		kernel("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(ncclDevKernelArgsStorage<4096ul>)", 1, 110, collArgs("allreduce", 41, `,"Rank":1`)),
		kernel("ncclDevKernel_AllGather_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)", 2, 120, collArgs("_allgather_base", 42, "")),
		kernel("ncclDevKernel_ReduceScatter_Sum_bf16_NVLS_SIMPLE(x)", 3, 130, collArgs("reduce_scatter_tensor_coalesced", 43, "")),
		kernel("ncclDevKernel_Broadcast_RING_LL(x)", 4, 140, collArgs("broadcast", 44, `,"Rank":2`)),
		kernel("ncclDevKernel_SendRecv(x)", 5, 150, collArgs("all_to_allv", 45, "")),
		kernel("ncclDevKernel_SendRecv(x)", 6, 160, collArgs("send", 9, `,"Rank":2,"Dst Rank":5`)),
		kernel("ncclDevKernel_SendRecv(x)", 7, 170, collArgs("recv", 10, `,"Rank":0,"Src Rank":1`)),
		kernel("ncclDevKernel_SendRecv(x)", 8, 180, collArgs("send", 11, `,"Rank":2,"Dst Rank":5`)),
		kernel("ncclDevKernel_Generic_4(x)", 9, 190, collArgs("allreduce", 46, "")),
	))
	assert.Equal(t, int64(3), tr.Rank().Rank)
	assert.Equal(t, "node7", tr.Rank().HostName)
	ops := ofKind(tr, model.KindCollective, model.KindSend, model.KindRecv)
	require.Len(t, ops, 9)
	some := model.Some[int64]
	want := []model.Collective{
		{Name: model.AllReduce, Algo: "TREE", Proto: "LL128", Seq: some(41), SeqScope: model.ScopeComm},
		{Name: model.AllGather, Algo: "RING", Proto: "SIMPLE", Seq: some(42), SeqScope: model.ScopeComm},
		{Name: model.ReduceScatter, Algo: "NVLS", Proto: "SIMPLE", Seq: some(43), SeqScope: model.ScopeComm},
		{Name: model.Broadcast, Algo: "RING", Proto: "LL", Seq: some(44), SeqScope: model.ScopeComm, Root: some(2)},
		{Name: model.AllToAll, Seq: some(45), SeqScope: model.ScopeComm},
		{Seq: some(0), SeqScope: model.ScopeOrdinal},
		{Seq: some(0), SeqScope: model.ScopeOrdinal},
		{Seq: some(1), SeqScope: model.ScopeOrdinal},
		{Name: model.AllReduce, Seq: some(46), SeqScope: model.ScopeComm},
	}
	for i, op := range ops {
		want[i].Bytes, want[i].DType = some(20), "bfloat16"
		assert.Equal(t, want[i], op.Collective, "operation %d", i)
		assert.Equal(t, model.Comm{ID: "5", Name: "mesh_tp", Digest: model.RanksDigest([]int64{1, 3, 5, 7}), Size: some(4), Rank: some(1)}, op.Comm)
		assert.Equal(t, 1000000000000+int64(110+10*i)*1000, op.Start)
		assert.Equal(t, some(op.Start-5000), op.Launch)
	}
	assert.Equal(t, []model.OpKind{model.KindSend, model.KindRecv, model.KindSend}, []model.OpKind{ops[5].Kind, ops[6].Kind, ops[7].Kind})
	assert.Equal(t, some(5), ops[5].Peer)
	assert.Equal(t, some(1), ops[6].Peer)
	assert.Equal(t, "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128", ops[0].Name)
	assert.Equal(t, "all_reduce", ops[0].Key)
}

// Both sides of a message and all members of a collective compute one key.
func TestRanksMeet(t *testing.T) {
	file := func(rank int, event string) (*model.Rank, model.Op) {
		header := strings.Replace(rank3of8, `"rank":3`, fmt.Sprintf(`"rank":%d`, rank), 1)
		tr := parseText(t, "job/x.json", trace(header, x("user_annotation", "ProfilerStep#4", 1, 100, 200, ""), event))
		r := tr.Rank()
		return &r, ofKind(tr, model.KindCollective, model.KindSend, model.KindRecv)[0]
	}
	r3, send := file(3, kernel("ncclDevKernel_SendRecv(x)", 6, 160, collArgs("send", 9, `,"Rank":2,"Dst Rank":5`)))
	r5, recv := file(5, kernel("ncclDevKernel_SendRecv(x)", 6, 160, collArgs("recv", 3, `,"Rank":1,"Src Rank":3`)))
	a, ok := model.Rendezvous(r3, &send)
	require.True(t, ok)
	b, ok := model.Rendezvous(r5, &recv)
	require.True(t, ok)
	assert.Equal(t, a, b)
	assert.NotEqual(t, r3.ClockID, r5.ClockID)
	assert.Equal(t, r3.Incarnation, r5.Incarnation)
}

// Operations of a coalescing group share one Seq, which then joins none of them;
// they are counted in their step, the others keep theirs.
func TestSharedSeq(t *testing.T) {
	tr := parseText(t, "x.json", trace(rank3of8,
		x("user_annotation", "ProfilerStep#4", 1, 100, 200, ""),
		kernel("ncclDevKernel_AllGather_RING_LL(x)", 1, 110, collArgs("_allgather_base", 7, "")),
		kernel("ncclDevKernel_AllGather_RING_LL(x)", 2, 120, collArgs("_allgather_base", 8, "")),
		kernel("ncclDevKernel_AllGather_RING_LL(x)", 3, 130, collArgs("_allgather_base", 8, "")),
		kernel("ncclDevKernel_SendRecv(x)", 4, 140, collArgs("send", 7, `,"Dst Rank":5`)), // counted apart
	))
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 3)
	for i, want := range []model.Collective{{Seq: model.Some(int64(7)), SeqScope: model.ScopeComm}, {Seq: model.Some(int64(0)), SeqScope: model.ScopeOrdinal}, {Seq: model.Some(int64(1)), SeqScope: model.ScopeOrdinal}} {
		assert.Equal(t, want.Seq, ops[i].Collective.Seq)
		assert.Equal(t, want.SeqScope, ops[i].Collective.SeqScope)
	}
	assert.Equal(t, int64(2), tr.Stats().SharedSeq)
}

func TestTruncatedRanks(t *testing.T) {
	args := func(pg string) string {
		return `"Collective name":"allreduce","In msg nelems":1,"Group size":8,"dtype":"Float","Process Group Name":"` + pg +
			`","Process Group Ranks":"[0, 1, 2, 3, ...]"`
	}
	tr := parseText(t, "x.json", trace(rank3of8,
		kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1, 110, args("0")),
		kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 2, 120, args("9")),
	))
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 2)
	assert.Equal(t, model.RanksDigest([]int64{0, 1, 2, 3, 4, 5, 6, 7}), ops[0].Comm.Digest, "pg_config knows the whole list")
	assert.Equal(t, model.Some(int64(3)), ops[0].Comm.Rank)
	assert.Equal(t, model.Comm{ID: "9", Name: "9", Size: model.Some(int64(8))}, ops[1].Comm, "nobody knows the rest")
}

// A trace as written before 2022: integer µs since 1970, other categories, the
// correlation in both ids, and arguments only on the annotation.
func TestOldDialect(t *testing.T) {
	const ts = 1600000000000000
	tr := parseText(t, "job/worker2.pt.trace.json", trace("",
		x("Operator", "ProfilerStep#1", 1, ts, 1000, ""),
		x("Operator", "aten::mul", 1, ts+1, 5, ""),
		x("Operator", "nccl:all_reduce", 9, ts+10, 20, `"Input Dims":[[5, 2]],"Input type":["double"]`),
		x("Runtime", "cudaLaunchKernel", 9, ts+15, 3, `"correlation":50`),
		x("Kernel", "ncclAllReduceRingLLKernel_sum_f64(ncclColl)", `"stream 20"`, ts+40, 6, `"correlation":50,"external id":50`),
		x("Kernel", "void gemm<128, true>(float*)", `"stream 7"`, ts+60, 6, `"correlation":51,"external id":51`),
		x("Memcpy", "Memcpy HtoD", `"stream 7"`, ts+70, 6, `"correlation":52,"bytes":99`),
	))
	assert.Equal(t, int64(2), tr.Rank().Rank)
	assert.True(t, tr.HasRank())
	ops := slices.Collect(tr.Ops())
	require.Len(t, ops, 4)
	ar := ops[0]
	assert.Equal(t, model.Collective{Name: model.AllReduce, Bytes: model.Some(int64(80)), DType: "float64", Seq: model.Some(int64(0)), SeqScope: model.ScopeOrdinal}, ar.Collective)
	assert.Equal(t, int64(ts+40)*1000, ar.Start)
	assert.Equal(t, model.Some(int64(ts+15)*1000), ar.Launch)
	assert.Equal(t, model.Some(int64(20)), ar.Stream)
	assert.Equal(t, "world", ar.Comm.ID)
	assert.Equal(t, "gemm<128, true>", ops[1].Name)
	assert.Equal(t, "gemm", ops[1].Key)
	assert.Equal(t, model.Some(int64(99)), ops[2].WorkBytes)
	assert.Equal(t, model.KindStep, ops[3].Kind)
	assert.Equal(t, int64(2), tr.Stats().NoLaunch)
}

func TestRCCL(t *testing.T) {
	tr := parseText(t, "rank_12.json", trace("",
		x("cuda_runtime", "hipLaunchKernel", 1, 90, 2, `"correlation":1`),
		x("kernel", "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 3, 100, 5,
			`"correlation":1,"stream":3,"Collective name":"all_gather_into_tensor_coalesced","In msg nelems":8,"dtype":"Half","Group size":16,"Process Group Name":"2"`),
		x("kernel", "ncclKernel_AllReduce_TREE_LL_Sum_half(ncclWork*)", 3, 110, 5, `"correlation":2,"stream":3`),
		x("kernel", "rcclGenericKernel(x)", 3, 120, 5, `"stream":3`),
	))
	assert.Equal(t, int64(12), tr.Rank().Rank)
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 3)
	assert.Equal(t, model.AllGather, ops[0].Collective.Name)
	assert.Equal(t, model.Some(int64(16)), ops[0].Collective.Bytes)
	assert.Equal(t, model.Collective{Name: model.AllReduce, Algo: "TREE", Proto: "LL", DType: "float16", Seq: model.Some(int64(0)), SeqScope: model.ScopeOrdinal}, ops[1].Collective)
	assert.False(t, ops[1].Launch.OK)
	assert.Equal(t, model.Collective{}, ops[2].Collective, "what it was is not known: it joins nobody")
}

// record_param_comms holds the arguments; its thread is the launching one.
func TestArgumentsOfTheMark(t *testing.T) {
	tr := parseText(t, "rank1.json", trace("",
		x("cpu_op", "record_param_comms", 1, 100, 50, `"External id":8,`+collArgs("reduce", 3, `,"Rank":0`)),
		x("user_annotation", "nccl:reduce", 1, 101, 40, ""),
		x("user_annotation", "nccl:broadcast", 2, 100, 50, ""), // another thread
		x("cuda_runtime", "cudaLaunchKernelExC", 1, 120, 2, `"correlation":4`),
		x("kernel", "ncclDevKernel_Generic_1(x)", 7, 130, 9, `"correlation":4,"External id":99`),
		x("kernel", "ncclDevKernel_Generic_1(x)", 7, 150, 9, `"correlation":5,"External id":8`),
	))
	for _, op := range ofKind(tr, model.KindCollective) {
		assert.Equal(t, model.Reduce, op.Collective.Name)
		assert.Equal(t, model.Some(int64(0)), op.Collective.Root)
		assert.Equal(t, "5", op.Comm.ID)
	}
}

// Messages of old traces: the peer stands in the annotation's name only.
func TestPeerFromAnnotation(t *testing.T) {
	tr := parseText(t, "rank1.json", trace("",
		x("user_annotation", "nccl:send 1->3", 1, 100, 50, `"Input Dims":[[4]],"Input type":["float"]`),
		x("user_annotation", "nccl:recv 1<-0", 1, 200, 50, ""),
		kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 1, 120, ""),
		kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 2, 220, ""),
		kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 3, 320, ""),
	))
	ops := ofKind(tr, model.KindCollective, model.KindSend, model.KindRecv)
	require.Len(t, ops, 3)
	assert.Equal(t, model.KindSend, ops[0].Kind)
	assert.Equal(t, model.Some(int64(3)), ops[0].Peer)
	assert.Equal(t, model.Some(int64(16)), ops[0].Collective.Bytes)
	assert.Equal(t, model.KindRecv, ops[1].Kind)
	assert.Equal(t, model.Some(int64(0)), ops[1].Peer)
	assert.Equal(t, model.SendRecv, ops[2].Collective.Name)
	assert.False(t, ops[2].Collective.Seq.OK, "with whom is not known: it joins nobody")
}

// Kernels of a CUDA graph share the correlation of its launch.
func TestGraph(t *testing.T) {
	tr := parseText(t, "rank1.json", trace("",
		x("cuda_runtime", "cudaGraphLaunch", 1, 10, 2, `"correlation":4`),
		x("kernel", "a", 7, 20, 9, `"correlation":4`), x("kernel", "b", 7, 30, 9, `"correlation":4`)))
	ops := ofKind(tr, model.KindCompute)
	require.Len(t, ops, 2)
	for _, op := range ops {
		assert.True(t, op.GraphCaptured)
		assert.Equal(t, model.Some(int64(10000)), op.Launch)
	}
}

func TestHostOps(t *testing.T) {
	text := trace("", x("cpu_op", "aten::a", 1, 10, 10, ""), x("cpu_op", "aten::b", 1, 12, 2, ""), x("kernel", "k", 7, 30, 9, ""))
	o := DefaultOptions()
	o.HostOps = true
	tr, err := Parse(t.Context(), strings.NewReader(text), "x.json", o)
	require.NoError(t, err)
	assert.Equal(t, map[model.OpKind]int{model.KindHost: 2, model.KindCompute: 1, model.KindStep: 1}, countKinds(tr))
	assert.Equal(t, map[model.OpKind]int{model.KindCompute: 1, model.KindStep: 1}, countKinds(parseText(t, "x.json", text)))
	assert.False(t, tr.HasRank())
}
