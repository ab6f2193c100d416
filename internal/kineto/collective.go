package kineto

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Directions of point-to-point operations, as PyTorch names them.
const (
	nameSend = "send"
	nameRecv = "recv"
)

// collectiveNames maps PyTorch's names, without underscores, to the model's.
var collectiveNames = map[string]string{
	"allreduce": model.AllReduce, "allreducecoalesced": model.AllReduce, "allreducesparse": model.AllReduce,
	"allgather": model.AllGather, "allgatherbase": model.AllGather, "allgatherintotensor": model.AllGather,
	"allgatherintotensorcoalesced": model.AllGather, "allgathercoalesced": model.AllGather,
	"reducescatter": model.ReduceScatter, "reducescatterbase": model.ReduceScatter, "reducescattertensor": model.ReduceScatter,
	"reducescattertensorcoalesced": model.ReduceScatter, "reducescattercoalesced": model.ReduceScatter,
	"broadcast": model.Broadcast, "broadcastoop": model.Broadcast, "reduce": model.Reduce, "reduceoop": model.Reduce,
	"alltoall": model.AllToAll, "alltoallv": model.AllToAll, "alltoallbase": model.AllToAll, "alltoallsingle": model.AllToAll,
	"send": nameSend, "recv": nameRecv, "recvanysource": nameRecv,
	"sendrecv": model.SendRecv, "barrier": model.Barrier,
}

// collectiveName returns the model's name of a PyTorch collective, "send" or
// "recv", or "" for one that the model does not know.
func collectiveName(s string) string {
	if len(s) > kernelname.MaxBytes {
		return ""
	}
	return collectiveNames[strings.ToLower(strings.ReplaceAll(s, "_", ""))]
}

// markName takes the collective out of an annotation's name: "nccl:all_reduce",
// "nccl:send 0->1", "gloo:all_reduce", "c10d::allreduce_". peer is the number
// behind the arrow, a rank of the communicator, or -1.
func markName(s string) (collective string, peer int64) {
	_, s, _ = strings.Cut(s, ":")
	s, arrow, _ := strings.Cut(strings.TrimPrefix(s, ":"), " ")
	peer = -1
	if i := strings.LastIndexAny(arrow, ">-"); i >= 0 {
		if n, ok := parseInt([]byte(arrow[i+1:])); ok {
			peer = n
		}
	}
	return collectiveName(s), peer
}

// dtype is an element type: its name in the model, and its size.
type dtype struct {
	name string
	size int64
}

// dtypes maps the spellings of PyTorch's scalar types and of C++ to types.
var dtypes = map[string]dtype{
	"float": {"float32", 4}, "double": {"float64", 8}, "half": {"float16", 2}, "c10::half": {"float16", 2},
	"bfloat16": {"bfloat16", 2}, "c10::bfloat16": {"bfloat16", 2},
	"byte": {"uint8", 1}, "unsigned char": {"uint8", 1}, "char": {"int8", 1}, "signed char": {"int8", 1},
	"short": {"int16", 2}, "short int": {"int16", 2}, "int": {"int32", 4}, "long": {"int64", 8}, "long int": {"int64", 8},
	"bool": {"bool", 1}, "uint16": {"uint16", 2}, "uint32": {"uint32", 4}, "uint64": {"uint64", 8},
	"complexfloat": {"complex64", 8}, "c10::complex<float>": {"complex64", 8},
	"complexdouble": {"complex128", 16}, "c10::complex<double>": {"complex128", 16},
	"float8_e4m3fn": {"float8_e4m3", 1}, "c10::float8_e4m3fn": {"float8_e4m3", 1},
	"float8_e5m2": {"float8_e5m2", 1}, "c10::float8_e5m2": {"float8_e5m2", 1},
}

func dtypeOf(s string) (dtype, bool) {
	if len(s) > kernelname.MaxBytes {
		return dtype{}, false
	}
	d, ok := dtypes[strings.ToLower(s)]
	return d, ok
}

// meta are the arguments of a collective. It is comparable, so that the
// operations that share all of them share one.
type meta struct {
	name   string // of the model, or send or recv; empty unknown
	dtype  string
	bytes  int64  // input of this rank; -1 unknown
	size   int64  // of the group; -1 unknown
	root   int64  // communicator rank; -1 unknown
	peer   int64  // global rank; -1 unknown
	local  int64  // communicator rank of the peer; -1 unknown
	pg     uint32 // process group's name
	desc   uint32
	ranks  uint32 // its ranks, as written
	algo   string
	proto  string
	noSeq  bool // Seq counts messages of this process: it joins nobody
	nelems int64
}

var noMeta = meta{bytes: -1, size: -1, root: -1, peer: -1, local: -1, nelems: -1}

// fill takes from other what m does not know.
func (m *meta) fill(o meta) {
	if m.name == "" || (m.name == model.SendRecv && o.name != "") {
		m.name = o.name
	}
	m.dtype = firstText(m.dtype, o.dtype)
	m.algo, m.proto = firstText(m.algo, o.algo), firstText(m.proto, o.proto)
	for _, p := range []struct{ to, from *int64 }{
		{&m.bytes, &o.bytes}, {&m.size, &o.size}, {&m.root, &o.root}, {&m.peer, &o.peer}, {&m.local, &o.local}, {&m.nelems, &o.nelems},
	} {
		if *p.to < 0 {
			*p.to = *p.from
		}
	}
	if m.pg == 0 {
		m.pg, m.desc, m.ranks = o.pg, o.desc, o.ranks
	}
	m.noSeq = m.noSeq || o.noSeq
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
