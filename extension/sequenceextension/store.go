// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// store is a storage extension to a ledger.
type store struct {
	client storage.Client
	failed bool // a value could not be read
}

// Load implements sequence.Store.
func (s *store) Load(key string) ([]byte, error) {
	data, err := hub.NewValue(s.client, key).Load(context.Background())
	s.failed = s.failed || err != nil
	return data, err //nolint:wrapcheck // says what it is
}

// Apply implements sequence.Store.
func (s *store) Apply(changes []sequence.Change) error {
	ops := make([]*storage.Operation, len(changes))
	for i, c := range changes {
		if ops[i] = storage.SetOperation(c.Key, c.Value); c.Value == nil {
			ops[i] = storage.DeleteOperation(c.Key)
		}
	}
	if err := s.client.Batch(context.Background(), ops...); err != nil {
		return fmt.Errorf("write storage: %w", err)
	}
	return nil
}
