// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"math"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Pattern names what a line says.
type Pattern string

// Patterns, with where the line is printed.
const (
	// MegatronIteration: a rank has read another iteration from the tracker than the greatest of all
	// ranks, which it takes; read_metadata of Megatron-LM's megatron/training/checkpointing.py.
	MegatronIteration Pattern = "megatron_iteration"
	// DeepSpeedShards: shards of the optimizer's state are not there, and it is not loaded;
	// _get_all_zero_checkpoints of DeepSpeed's runtime/engine.py, which newer releases have not.
	DeepSpeedShards Pattern = "deepspeed_shards"
	// DeepSpeedTag: ranks save one checkpoint under different tags; _checkpoint_tag_validation there.
	DeepSpeedTag Pattern = "deepspeed_tag"
	// NCCLVersion: ranks of a communicator run different versions of NCCL; src/init.cc.
	NCCLVersion Pattern = "nccl_version"
	// NCCLNetDevices: ranks of a communicator see different numbers of network devices; src/init.cc.
	NCCLNetDevices Pattern = "nccl_net_devices"
	// DriverAPI: a client's driver libraries are not of the version of the kernel module; the NVIDIA
	// kernel module, "API mismatch".
	DriverAPI Pattern = "nvidia_api"
	// DriverLibrary: the same, as NVML says it (NVML_ERROR_LIB_RM_VERSION_MISMATCH).
	DriverLibrary Pattern = "nvml_library"
	// FabricManager: it is not of the version of the driver, and does not start.
	FabricManager Pattern = "fabric_manager"
)

// Hit is what a line says.
type Hit struct {
	Pattern Pattern
	// Rank is that of who printed the line, where it says so.
	Rank model.Optional[int64]
	// Fields are what else the line says, as it says it.
	Fields []Field
	// Absurd: what the line says can not be, so that it shows less than it says.
	Absurd bool
}

// Field is one thing that a line says.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// maxLine bounds how much of a line is looked at, in bytes: what comes before the text, as the names
// of a launcher and a host, is shorter.
const maxLine = 8 << 10

var patterns = []struct {
	pattern Pattern
	needle  string
	read    func(line, rest string, h *Hit) bool
}{
	{MegatronIteration, " in the metadata while max iteration across the ranks is ", readMegatron},
	{DeepSpeedShards, "The following zero checkpoints paths are missing: ", readShards},
	{DeepSpeedTag, "' is not consistent across all ranks. Including rank unique information in checkpoint tag", readTag},
	{NCCLVersion, "Mismatched NCCL version detected : rank ", readNCCL},
	{NCCLNetDevices, "Detected mixed local Net device counts across ranks (min ", readNetDevices},
	{DriverAPI, "API mismatch: the client ", readDriver},
	{DriverLibrary, "Failed to initialize NVML: Driver/library version mismatch", readNothing},
	{FabricManager, "fabric manager NVIDIA GPU driver interface version ", readFabricManager},
}

// Recognise reports what a line says, if it is one of those that are known. What stands before it in
// the line, as a time, a rank or a colour, is nothing to it.
func Recognise(line string) (Hit, bool) {
	line = line[:min(len(line), maxLine)]
	for i := range patterns {
		p := &patterns[i]
		before, rest, found := strings.Cut(line, p.needle)
		if !found {
			continue
		}
		h := Hit{Pattern: p.pattern}
		if p.read(before, rest, &h) {
			return h, true
		}
	}
	return Hit{}, false
}

// readMegatron: what is not the greatest of all, or no 32 bits' number, comes of an all-reduce in which
// not all ranks took part (https://github.com/intelligent-machine-learning/dlrover/issues/1233). "on rank R found iteration I" stands before, "M, replacing it with max iteration"
// behind.
func readMegatron(before, rest string, h *Hit) bool {
	at := strings.LastIndex(before, "on rank ")
	if at < 0 {
		return false
	}
	rank, before := digits(before[at+len("on rank "):])
	iteration, left := digits(strings.TrimPrefix(before, " found iteration "))
	most, rest := digits(rest)
	n, ok := whole(rank)
	if !ok || iteration == "" || left != "" || most == "" || !strings.HasPrefix(rest, ", replacing it with max iteration") {
		return false
	}
	h.Rank = model.Some(n)
	h.add("iteration", iteration)
	h.add("max_iteration", most)
	own, ok1 := whole(iteration)
	greatest, ok2 := whole(most)
	h.Absurd = !ok1 || !ok2 || greatest < own || greatest > math.MaxInt32
	return true
}

// readShards: a list of paths follows.
func readShards(_, rest string, h *Hit) bool {
	list, closed := strings.CutPrefix(rest, "[")
	if !closed {
		return false
	}
	first, _, ok := strings.Cut(strings.TrimPrefix(list, "'"), "'")
	if !ok || first == "" {
		return false
	}
	h.add("first", first)
	return true
}

// readTag: "[rank=R] The checkpoint tag name 'T" stands before.
func readTag(before, _ string, h *Hit) bool {
	at := strings.LastIndex(before, "The checkpoint tag name '")
	if at < 0 {
		return false
	}
	h.add("tag", before[at+len("The checkpoint tag name '"):])
	if k := strings.LastIndex(before[:at], "[rank="); k >= 0 {
		rank, _ := digits(before[k+len("[rank="):])
		h.Rank.V, h.Rank.OK = whole(rank)
	}
	return true
}

// readNCCL: "I version V rank J version W" follows.
func readNCCL(_, rest string, h *Hit) bool {
	var values [4]string
	for i, between := range []string{" version ", " rank ", " version ", ""} {
		values[i], rest = digits(rest)
		var ok bool
		if rest, ok = strings.CutPrefix(rest, between); !ok || values[i] == "" {
			return false
		}
	}
	for i, name := range []string{"rank", "version", "other_rank", "other_version"} {
		h.add(name, values[i])
	}
	return true
}

// readNetDevices: "N, max M)" follows, and whether it is ignored.
func readNetDevices(_, rest string, h *Hit) bool {
	least, rest := digits(rest)
	rest, ok := strings.CutPrefix(rest, ", max ")
	most, rest := digits(rest)
	if !ok || least == "" || most == "" || !strings.HasPrefix(rest, ")") {
		return false
	}
	h.add("min", least)
	h.add("max", most)
	if strings.Contains(rest, "Ignoring") {
		h.add("ignored", "true")
	}
	return true
}

// readDriver: the client's version follows, and in the same line or in the next ones, which may be
// records of their own, the module's.
func readDriver(_, rest string, h *Hit) bool {
	client, module, _ := strings.Cut(rest, "this kernel module")
	version, ok := versionIn(client)
	if !ok {
		return false
	}
	h.add("client", version)
	if version, ok = versionIn(module); ok {
		h.add("kernel_module", version)
	}
	return true
}

func readNothing(string, string, *Hit) bool { return true }

// readFabricManager: "V don't match with driver version W" follows; typographic in some releases'
// documents.
func readFabricManager(_, rest string, h *Hit) bool {
	own, rest := version(rest)
	_, driver, ok := strings.Cut(rest, "match with driver version ")
	other, _ := version(driver)
	if !ok || own == "" || other == "" {
		return false
	}
	h.add("fabric_manager", own)
	h.add("driver", other)
	return true
}

func (h *Hit) add(name, value string) { h.Fields = append(h.Fields, Field{name, value}) }
