// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

const (
	// maxRAS bounds what NCCL's RAS says in prose: some KB, as it names at most ten of what differs.
	maxRAS = 1 << 20
	// rasWait is how long the process that is asked waits for others, of which nothing is used: the
	// least of the whole seconds that NCCL takes.
	rasWait = time.Second
)

// NCCL asks the RAS of a process of this node which version of NCCL it runs. Which process answers
// is the kernel's choice; of the others of its job, which may be on other nodes, it says nothing.
// That nobody listens is not an error: no job runs, or it has no RAS.
func NCCL(ctx context.Context, address string, timeout time.Duration) *Read {
	r := &Read{}
	c := ras.Client{Address: address, Wait: rasWait, Timeout: timeout, MaxBytes: maxRAS}
	said, err := c.Version(ctx)
	if ras.Nobody(err) {
		return r
	}
	if err == nil {
		if said, err = text(said); err != nil {
			err = fmt.Errorf("read version of NCCL at %s: %w", address, err)
		}
	}
	r.problem(err)
	r.add(Version{Domain: model.VersionNCCL, Version: said, Witness: "NCCL's RAS at " + address})
	return r
}
