// SPDX-License-Identifier: Apache-2.0

package model

import "strings"

// OpSend and OpRecv name the two sides of a message.
const (
	OpSend = "send"
	OpRecv = "recv"
)

// ncclFunctions are NCCL's names in the words of the data model.
var ncclFunctions = map[string]string{
	"AllReduce": AllReduce, "AllGather": AllGather, "ReduceScatter": ReduceScatter,
	"Broadcast": Broadcast, "Bcast": Broadcast, "Reduce": Reduce,
	"AllToAll": AllToAll, "AlltoAll": AllToAll,
	"SendRecv": SendRecv, "Send": OpSend, "Recv": OpRecv,
	"Gather": "gather", "Scatter": "scatter", "AllGatherV": "all_gather_v",
}

// NCCLFunction returns the name of NCCL's function in the words of the data model, on
// which operations of several sources are joined: "AllReduce" and "ncclAllReduce" are
// all_reduce. Unknown ones are in lower case, "" stays "".
func NCCLFunction(name string) string {
	name = strings.TrimPrefix(name, "nccl")
	if known, ok := ncclFunctions[name]; ok {
		return known
	}
	return strings.ToLower(name)
}
