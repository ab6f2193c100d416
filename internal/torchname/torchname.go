// SPDX-License-Identifier: Apache-2.0

// Package torchname owns PyTorch's names of collectives and of element types, and which
// of the model's they are.
package torchname

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Directions of point-to-point operations, as PyTorch names them.
const (
	Send = "send"
	Recv = "recv"
)

// maxBytes bounds the names that are looked up: the longest known one has 40.
const maxBytes = 128

// collectives maps PyTorch's names, without underscores, to the model's.
var collectives = map[string]string{
	"allreduce": model.AllReduce, "allreducecoalesced": model.AllReduce, "allreducesparse": model.AllReduce,
	"allgather": model.AllGather, "allgatherbase": model.AllGather, "allgatherintotensor": model.AllGather,
	"allgatherintotensorcoalesced": model.AllGather, "allgathercoalesced": model.AllGather,
	"reducescatter": model.ReduceScatter, "reducescatterbase": model.ReduceScatter, "reducescattertensor": model.ReduceScatter,
	"reducescattertensorcoalesced": model.ReduceScatter, "reducescattercoalesced": model.ReduceScatter,
	"broadcast": model.Broadcast, "broadcastoop": model.Broadcast, "reduce": model.Reduce, "reduceoop": model.Reduce,
	"alltoall": model.AllToAll, "alltoallv": model.AllToAll, "alltoallbase": model.AllToAll, "alltoallsingle": model.AllToAll,
	"send": Send, "recv": Recv, "recvanysource": Recv,
	"sendrecv": model.SendRecv, "barrier": model.Barrier,
}

// Collective returns the model's name of a PyTorch collective, Send or Recv, or "" for
// one that the model does not know.
func Collective(s string) string {
	if len(s) > maxBytes {
		return ""
	}
	return collectives[strings.ToLower(strings.ReplaceAll(s, "_", ""))]
}

// DType is an element type: its name in the model, and its size in bytes.
type DType struct {
	Name string
	Size int64
}

// dtypes maps the spellings of PyTorch's scalar types and of C++ to types.
var dtypes = map[string]DType{
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

// DTypeOf returns the type of a name; false for one that is not known.
func DTypeOf(s string) (DType, bool) {
	if len(s) > maxBytes {
		return DType{}, false
	}
	d, ok := dtypes[strings.ToLower(s)]
	return d, ok
}
