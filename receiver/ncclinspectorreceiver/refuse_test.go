// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// newRefuser returns a consumer that refuses as it is told.
func newRefuser(refuse func() error) (consumer.Traces, error) {
	return consumer.NewTraces(func(context.Context, ptrace.Traces) error { return refuse() })
}
