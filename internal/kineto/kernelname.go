// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// kernelName is what the name of a communication kernel says.
type kernelName struct {
	comm        bool
	collective  string // of the model; empty where the name does not say
	algo, proto string
	dtype       string // of reductions only: other kernels move bytes
}

// commPrefixes begin the names of kernels of NCCL, RCCL and MSCCL.
var commPrefixes = []string{"nccl", "rccl", "msccl"}

func parseKernelName(raw string) kernelName {
	s := strings.TrimPrefix(raw, "void ")
	if i := strings.IndexAny(s, "(<"); i > 0 {
		s = s[:i]
	}
	lower := strings.ToLower(s)
	if !hasAnyPrefix(lower, commPrefixes) || !strings.Contains(lower, "kernel") {
		return kernelName{}
	}
	k := kernelName{comm: true, collective: kernelCollective(lower)}
	if k.collective == model.SendRecv {
		return k // whatever algorithm it names, it uses none
	}
	tokens := strings.Split(lower, "_")
	for i, t := range tokens {
		if a, ok := algos[t]; ok {
			k.algo = a
			if t == "nvls" && i+1 < len(tokens) && tokens[i+1] == "tree" {
				k.algo = "NVLS_TREE"
				break
			}
		}
	}
	for _, t := range tokens {
		if p, ok := protos[t]; ok {
			k.proto = p
		} else if d, ok := kernelTypes[t]; ok && model.AllGather != k.collective && model.Broadcast != k.collective {
			k.dtype = d
		}
	}
	return k
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func kernelCollective(lower string) string {
	for _, c := range kernelCollectives {
		if strings.Contains(lower, c.part) {
			return c.name
		}
	}
	return ""
}

// kernelCollectives: the longer part first.
var kernelCollectives = []struct{ part, name string }{
	{"reducescatter", model.ReduceScatter},
	{"allreduce", model.AllReduce},
	{"allgather", model.AllGather},
	{"alltoall", model.AllToAll},
	{"broadcast", model.Broadcast},
	{"reduce", model.Reduce},
	{"sendrecv", model.SendRecv},
}

var algos = map[string]string{
	"ring": "RING", "tree": "TREE", "collnet": "COLLNET", "collnetdirect": "COLLNET_DIRECT",
	"collnetchain": "COLLNET_CHAIN", "nvls": "NVLS", "nvlstree": "NVLS_TREE", "pat": "PAT",
}

var protos = map[string]string{"ll": "LL", "ll128": "LL128", "simple": "SIMPLE"}

// kernelTypes are the types of kernel names, without the "_t" that some carry.
var kernelTypes = map[string]string{
	"float": "float32", "f32": "float32", "half": "float16", "f16": "float16", "bf16": "bfloat16", "bfloat16": "bfloat16",
	"double": "float64", "f64": "float64", "int8": "int8", "i8": "int8", "uint8": "uint8", "u8": "uint8",
	"int32": "int32", "i32": "int32", "uint32": "uint32", "u32": "uint32",
	"int64": "int64", "i64": "int64", "uint64": "uint64", "u64": "uint64",
	"f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2",
}
