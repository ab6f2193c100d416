// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// safetensorsFile is a file of safetensors with tensors of 32-bit floats. Metadata is what it says beside
// its format: `,"key":"value"` and so on.
func safetensorsFile(seed int64, metadata string, names ...string) []byte {
	var head strings.Builder
	var data []byte
	head.WriteString(`{"__metadata__":{"format":"pt"` + metadata + `}`)
	for _, name := range names {
		t := weights(24, seed, name).bytes()
		fmt.Fprintf(&head, `,%q:{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}`, name, len(t)/4, len(data), len(data)+len(t))
		data = append(data, t...)
	}
	head.WriteByte('}')
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(head.Len()))
	return append(append(b, head.String()...), data...)
}

// safetensorsIndex lists which of n shards holds which tensor, two in each. Metadata is what else it says.
func safetensorsIndex(n int, metadata string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"metadata":{"total_size":%d%s},"weight_map":{`, n*2*24*4, metadata)
	for i := range n {
		for k, name := range shardTensors(i) {
			if i+k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%q", name, shardName(i, n))
		}
	}
	b.WriteString("}}\n")
	return []byte(b.String())
}

func shardTensors(i int) []string {
	return []string{fmt.Sprintf("model.layers.%d.attn.weight", i), fmt.Sprintf("model.layers.%d.mlp.weight", i)}
}

func shardName(i, n int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }
