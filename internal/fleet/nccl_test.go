// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

func TestNCCL(t *testing.T) {
	s := rastest.Start(t)
	s.Prose(rastest.Prose("2.28.7"))
	assert.Equal(t, &Read{Versions: []Version{{
		Domain: model.VersionNCCL, Version: "2.28.7", Witness: "NCCL's RAS at " + s.Address,
	}}}, NCCL(t.Context(), s.Address, time.Minute), "and not CUDA's, which is of the driver where nodes tell it")
	assert.Equal(t, []string{"CLIENT PROTOCOL 2", "TIMEOUT 1", "STATUS"}, s.Commands())
}

// A node without a job has nobody who listens: that is not known, and no fault.
func TestNobodyListens(t *testing.T) {
	assert.Equal(t, &Read{}, NCCL(t.Context(), "127.0.0.1:1", time.Minute))
}

func TestRASThatFails(t *testing.T) {
	s := rastest.Start(t)
	ask := func(timeout time.Duration) []string {
		r := NCCL(t.Context(), s.Address, timeout)
		assert.Empty(t, r.Versions)
		return r.Problems
	}
	at := "ask NCCL's RAS at " + s.Address + ": "
	assert.Equal(t, []string{at + `read status: got "ERROR: Unknown command STATUS"; want NCCL version and a number`}, ask(time.Minute))
	s.Prose(rastest.Prose("2.2\x7f"))
	assert.Equal(t, []string{"read version of NCCL at " + s.Address + `: got "2.2\x7f"; want one line of visible ASCII`}, ask(time.Minute))
	s.Prose(rastest.Prose("2." + strings.Repeat("7", maxText)))
	assert.Equal(t, []string{"read version of NCCL at " + s.Address + ": got 514 bytes; want at most 512"}, ask(time.Minute))
	s.Silent()
	began := time.Now()
	assert.Equal(t, []string{at + "got no whole answer in 200ms: context deadline exceeded"}, ask(200*time.Millisecond))
	assert.Less(t, time.Since(began), 30*time.Second)
}
