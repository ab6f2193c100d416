// SPDX-License-Identifier: Apache-2.0

// Package ledger connects the processor that counts spans to the analyses that conclude their steps: the extension
// sequence offers the service.
package ledger

import (
	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/component/services"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// Service is what the extension sequence offers. It is safe for concurrent use.
type Service interface {
	// Join has the spans of a step wait for its conclusion, until leave is called. Without any analysis, a span
	// counts as one without a step when it arrives.
	Join() (leave func())
	// Arriving takes what a batch has before it is passed on. Arrived or Refused follows.
	Arriving(all []sequence.Arrival)
	// Refused takes what a batch had that no analysis has used.
	Refused(all []sequence.Arrival)
	// Arrived takes what a batch had, once it was accepted or an analysis has used it, and returns when that is stored.
	Arrived(all []sequence.Arrival)
	// Begin takes a step whose conclusion is about to be sent, and returns what is known of the step.
	Begin(step sequence.Step) sequence.Verdict
	// End takes steps whose conclusion was sent, or refused for good.
	End(steps []sequence.Step)
	// Losses returns what was lost since the last call.
	Losses() []sequence.Loss
}

// Find returns the service of an extension.
func Find(host component.Host, id component.ID) (Service, error) {
	return services.Find[Service](host, id, "sequence") //nolint:wrapcheck // says what it is
}
