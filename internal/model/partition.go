// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"strconv"
)

// Partition returns the partition, 0 to n-1, of a key in a topic of n partitions, n > 0: the one that Kafka's
// Java clients and librdkafka's murmur2 partitioners choose (org.apache.kafka.clients.producer.internals.
// BuiltInPartitioner.partitionForKey). It is independent of [RendezvousKey.Hash]: collectives that are kept by
// a sampling over that hash still spread over all partitions.
func Partition(key []byte, n int32) int32 {
	const positive = 0x7fffffff
	return int32(murmur2(key)&positive) % n
}

// murmur2 is MurmurHash2 of 32 bits, little endian, with Kafka's seed (org.apache.kafka.common.utils.Utils.murmur2).
func murmur2(b []byte) uint32 {
	const (
		seed  = 0x9747b28c
		mix   = 0x5bd1e995
		shift = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * mix
		k ^= k >> shift
		h = h*mix ^ k*mix
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * mix
	}
	h = (h ^ h>>13) * mix
	return h ^ h>>15
}

// AppendPartitionKey appends to b the bytes by which an operation goes to a partition: the wire form of its
// rendezvous, so that all ranks' parts of one collective meet. Operations that meet no other rank's go by rank
// and step, so that those of one rank's step stay together and the ranks of a step spread.
func AppendPartitionKey(b []byte, r *Rank, op *Op) []byte {
	if k, ok := Rendezvous(r, op); ok {
		return k.Append(b)
	}
	b = append(append(b, r.Incarnation...), separator)
	b = append(strconv.AppendInt(b, r.Rank, 10), separator)
	if op.Step.OK {
		b = strconv.AppendInt(b, op.Step.V, 10)
	}
	return append(b, separator)
}
