// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNCCLFunctionsHaveTheNamesOfTheModel(t *testing.T) {
	for in, want := range map[string]string{
		"AllReduce": AllReduce, "ncclAllReduce": AllReduce, "Bcast": Broadcast, "AlltoAll": AllToAll,
		"Send": OpSend, "SomethingNew": "somethingnew", "": "", "nccl": "",
	} {
		assert.Equal(t, want, NCCLFunction(in), "%q", in)
	}
}
