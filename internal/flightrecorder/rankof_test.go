// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRankOf(t *testing.T) {
	for _, tt := range []struct {
		path, prefix string
		rank         int64
		ok           bool
	}{
		{"/tmp/nccl_trace_rank_0", "nccl_trace_rank_", 0, true},
		{"/root/.cache/torch/comm_lib_trace_rank_131071", "comm_lib_trace_rank_", 131071, true},
		{"dumps/_dump_3", "_dump_", 3, true},
		{"nccl_trace_rank_container-node02_5", "nccl_trace_rank_container-node02_", 5, true},
		{"rank3.json", "rank", 3, true},
		{"rank3.pickle.gz", "rank", 3, true},
		{"job7/host2/trace-12.pkl", "trace-", 12, true},
		{"rank3_host7.json", "rank", 3, true},
		{"rank3_1758580155793.json", "rank", 3, true},
		{"RANK-12", "RANK-", 12, true},
		{"12", "", 12, true},
		{"fr.gpu-3", "fr.gpu-", 3, true},
		{"node.12", "node.", 12, true},
		{"rank1_of_rank2", "", 0, false},     // which?
		{"local_rank_5", "", 0, false},       // of its host only
		{"host3-dump.json", "", 0, false},    // a host's
		{"dump_1758580155793", "", 0, false}, // a time
		{"dump_99999999999999999999", "", 0, false},
		{"trace.json", "", 0, false},
		{"", "", 0, false},
	} {
		rank, prefix, ok := RankOf(tt.path)
		assert.Equal(t, tt.ok, ok, tt.path)
		if tt.ok {
			assert.Equal(t, tt.rank, rank, tt.path)
			assert.Equal(t, tt.prefix, prefix, tt.path)
		}
	}
}

func TestParseRanks(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []int64
		ok   bool
	}{
		{"[0, 1, 2]", []int64{0, 1, 2}, true},
		{"[0,1]", []int64{0, 1}, true}, // torchcomms
		{" [ 3 , 1 ] ", []int64{3, 1}, true},
		{"[]", nil, true},
		{"", nil, true},
		{"[1, 1]", nil, false},
		{"[2, 1, 2]", nil, false},
		{"[0, 1", nil, false},
		{"[0 1]", nil, false},
		{"[0, ]", nil, false},
		{"[-1]", nil, false},
		{"[0, 1, 2, 3, 4]", nil, false}, // beyond the limit
		{"[1048576]", nil, false},
		{"]", nil, false},
		{"[", nil, false},
		{"all", nil, false},
	} {
		got, ok := parseRanks([]byte(tt.text), 4)
		assert.Equal(t, tt.ok, ok, tt.text)
		if ok {
			assert.Equal(t, tt.want, got, tt.text)
		}
	}
}
