// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values are those of Kafka's own test, org.apache.kafka.common.utils.UtilsTest.testMurmur2.
func TestMurmur2_KafkasTestVectors_AreMet(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		assert.Equal(t, want, int32(murmur2([]byte(key))), key)
	}
}

func TestPartition_NegativeHash_IsMadePositiveAsInJava(t *testing.T) {
	// -973932308 & 0x7fffffff = 1173551340, of which the rest by 7 is 5.
	assert.EqualValues(t, 1173551340%7, Partition([]byte("21"), 7))
}

// All ranks' parts of one collective meet in one partition, and a rank's operations of a step that meet no
// other rank stay together.
func TestAppendPartitionKey_PartsOfACollective_Meet(t *testing.T) {
	op := Op{Kind: KindCollective, Step: Some(int64(3)), Comm: Comm{ID: "c"}, Collective: Collective{Name: AllReduce, Seq: Some(int64(9)), SeqScope: ScopeComm}}
	first := Rank{Incarnation: "i", Rank: 0}
	second := Rank{Incarnation: "i", Rank: 1, HostName: "other"}
	assert.Equal(t, AppendPartitionKey(nil, &first, &op), AppendPartitionKey(nil, &second, &op))
	key, ok := Rendezvous(&first, &op)
	assert.True(t, ok)
	assert.Equal(t, key.Bytes(), AppendPartitionKey(nil, &first, &op))

	kernel := Op{Kind: KindCompute, Name: "gemm", Step: Some(int64(3))}
	other := Op{Kind: KindHost, Name: "load", Step: Some(int64(3))}
	next := Op{Kind: KindCompute, Name: "gemm", Step: Some(int64(4))}
	assert.Equal(t, AppendPartitionKey(nil, &first, &kernel), AppendPartitionKey(nil, &first, &other))
	assert.NotEqual(t, AppendPartitionKey(nil, &first, &kernel), AppendPartitionKey(nil, &second, &kernel))
	assert.NotEqual(t, AppendPartitionKey(nil, &first, &kernel), AppendPartitionKey(nil, &first, &next))
	assert.Equal(t, "x"+string(AppendPartitionKey(nil, &first, &next)), string(AppendPartitionKey([]byte("x"), &first, &next)))
}

// The document's keys, hashes and partitions, which were computed from Kafka's definition by another program.
func TestPartition_ExamplesOfTheDocument_AreTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/format/kafka.md")
	require.NoError(t, err)
	rank := Rank{Incarnation: "train-7", Rank: 5}
	for operation, op := range map[string]Op{
		"collective 42": {
			Kind: KindCollective, Step: Some(int64(12)), Comm: Comm{ID: "0xc0ffee"},
			Collective: Collective{Name: AllReduce, Seq: Some(int64(42)), SeqScope: ScopeComm},
		},
		"a kernel": {Kind: KindCompute, Name: "gemm", Step: Some(int64(12))},
	} {
		row := regexp.MustCompile("(?m)^\\| " + operation + ".*\\| `(.*)` \\| (0x[0-9a-f]{8}) \\| (\\d+) \\| (\\d+) \\|$").FindStringSubmatch(string(text))
		require.NotNil(t, row, operation)
		key := AppendPartitionKey(nil, &rank, &op)
		assert.Equal(t, row[1], strings.ReplaceAll(string(key), "\x00", "."), operation)
		assert.Equal(t, row[2], fmt.Sprintf("0x%08x", murmur2(key)), operation)
		assert.Equal(t, row[3], strconv.Itoa(int(murmur2(key)&0x7fffffff)), operation)
		assert.Equal(t, row[4], strconv.Itoa(int(Partition(key, 16))), operation)
	}
}

// Sarama's default, FNV-1a of 32 bits, depends in its last bit on the same bits of the key as the hash for sampling:
// an even number of partitions gets what a sampling keeps in half of them.
func TestPartition_BySaramasDefault_WouldLeaveHalfEmpty(t *testing.T) {
	const partitions, one = 16, 64
	got := map[int32]bool{}
	for seq := range int64(64 * 1024) {
		k := RendezvousKey{Incarnation: "inc", Comm: "c" + strconv.FormatInt(seq%5, 10), Scope: ScopeComm, Seq: seq}
		if k.Hash()%one == 0 {
			h := fnv.New32a()
			_, _ = h.Write(k.Bytes())
			// As sarama's hash partitioner does it.
			p := int32(h.Sum32()) % partitions
			got[max(p, -p)] = true
		}
	}
	assert.LessOrEqual(t, len(got), partitions/2)
}

// Collectives that a sampling by hash keeps spread over all partitions: a partition by the same hash would get
// all of them or none.
func TestPartition_SampledCollectives_SpreadOverAllPartitions(t *testing.T) {
	const partitions, one = 16, 64
	got, kept := map[int32]int{}, 0
	for seq := range int64(64 * 1024) {
		k := RendezvousKey{Incarnation: "inc", Comm: "c" + strconv.FormatInt(seq%5, 10), Scope: ScopeComm, Seq: seq}
		if k.Hash()%one == 0 {
			kept++
			got[Partition(k.Bytes(), partitions)]++
		}
	}
	assert.Len(t, got, partitions)
	for p, n := range got {
		// A count is binomial: it exceeds six standard deviations once in 500 million.
		mean := float64(kept) / partitions
		assert.InDelta(t, mean, n, 6*math.Sqrt(mean*(partitions-1)/partitions), "partition %d of %d kept", p, kept)
	}
}
