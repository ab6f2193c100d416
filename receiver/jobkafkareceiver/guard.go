// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"fmt"
	"time"
)

// guardEvery is how often silence is looked for.
const guardEvery = time.Second

// guard ends a membership whose brokers do not answer: others may have its partitions after session_timeout, so that
// analyses are suspended by then. The client itself waits for four answers, of which each may take as long as the
// members of a group have to join. After that, and until the membership is over, what waits for an answer fails after
// the same time.
func (m *member) guard(over <-chan struct{}, end context.CancelCauseFunc) {
	ticker := time.NewTicker(guardEvery)
	defer ticker.Stop()
	for silent := false; ; {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		if !silent && !m.reading.Load() || m.dialer.Break(m.cfg.SessionTimeout) == 0 || silent {
			continue
		}
		silent = true
		m.suspended.Store(true)
		m.suspend()
		end(fmt.Errorf("read as a member of group %q: got no answer from a broker for %v", m.cfg.GroupID, m.cfg.SessionTimeout))
	}
}

// suspend has analyses keep open what is open.
func (m *member) suspend() {
	if m.jobs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.limit, forgetLimit)
	defer cancel()
	m.jobs.Suspend(ctx)
}
