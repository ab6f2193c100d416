package kineto

import (
	"regexp"
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

// maxNameBytes bounds a name as shown. Kernel names of templated libraries run
// to thousands of bytes; what tells them apart stands in the first few hundred.
const maxNameBytes = 256

// shownName returns a kernel's name without its parameter list.
func shownName(raw string) string {
	s := strings.TrimPrefix(raw, "void ")
	return clip(strings.TrimSpace(stripBrackets(s, '(', ')')))
}

func clip(s string) string {
	if len(s) <= maxNameBytes {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:maxNameBytes], "")
}

var (
	// tuned are parts of a name that an autotuner or a library's heuristic
	// chooses: tile sizes, stages, warps, and Triton's trailing numbers.
	tuned = regexp.MustCompile(`_(?:\d+x\d+(?:x\d+)*|tilesize\d+(?:x\d+)*|stage\d+|stages_\d+x\d+|warpsize\d+(?:x\d+)*|nthreads\d+|num_warps\d+|unroll\d+|split[kK]?\d+)(_|$)`)
	// suffix is the number of a generated kernel and Triton's signature.
	suffix = regexp.MustCompile(`(?:_(?:\d+[\dcde]*|__\d+))+$`)
)

// normalKey returns the name for comparison: no namespaces that say nothing, no
// template arguments, parameters or tuning.
func normalKey(raw string) string {
	s := strings.TrimPrefix(raw, "void ")
	s = strings.ReplaceAll(s, "(anonymous namespace)::", "")
	s = stripBrackets(stripBrackets(s, '<', '>'), '(', ')')
	for {
		t := tuned.ReplaceAllString(s, "$1")
		if t == s {
			break
		}
		s = t
	}
	if t := suffix.ReplaceAllString(s, ""); t != "" {
		s = t
	}
	return clip(strings.TrimSpace(s))
}

// stripBrackets removes what stands in brackets, save "(anonymous namespace)"
// and the names of operators.
func stripBrackets(s string, open, closing byte) string {
	if strings.IndexByte(s, open) <= 0 || strings.Contains(s, "operator") {
		return s
	}
	const anonymous = "(anonymous namespace)"
	out := make([]byte, 0, len(s))
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case depth == 0 && c == '(' && strings.HasPrefix(s[i:], anonymous):
			out = append(out, anonymous...)
			i += len(anonymous) - 1
		case c == open:
			depth++
		case c == closing && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	if depth > 0 || len(out) == 0 {
		return s
	}
	return string(out)
}
