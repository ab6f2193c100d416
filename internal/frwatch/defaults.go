// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"path/filepath"
	"slices"
)

// prefixVariables hold the beginning of the dumps' names, to which PyTorch appends the
// rank; the first that is set counts.
var prefixVariables = []string{
	"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCHCOMM_FR_DUMP_TEMP_FILE",
}

// DefaultPatterns returns where the processes of this environment write their dumps: what
// the variables say, else the places that PyTorch had in its versions.
func DefaultPatterns(getenv func(string) string) []string {
	var out []string
	add := func(prefix string) {
		if p := escape(prefix) + "[0-9]*"; !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, name := range prefixVariables {
		if prefix := getenv(name); prefix != "" {
			add(prefix)
		}
	}
	if len(out) > 0 {
		return out
	}
	cache := getenv("XDG_CACHE_HOME")
	if home := getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if cache != "" {
		add(filepath.Join(cache, "torch", "comm_lib_trace_rank_"))
		add(filepath.Join(cache, "torch", "nccl_trace_rank_"))
	}
	add("/tmp/nccl_trace_rank_")
	return out
}

// escape makes a name match itself only.
func escape(name string) string {
	var out []byte
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, name[i])
	}
	return string(out)
}
