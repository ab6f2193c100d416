package timelineextension

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// store keeps the timeline in a storage extension.
type store struct{ client storage.Client }

const stateKey = "timeline"

// openStore finds the extension; nil where none is configured. It is an error where
// the configured one is none.
func openStore(ctx context.Context, host component.Host, id *component.ID, self component.ID) (*store, error) {
	if id == nil {
		return nil, nil //nolint:nilnil // no storage is no error
	}
	ext, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, fmt.Errorf("find storage: got no extension %q; want one that is listed under service::extensions", id)
	}
	s, ok := ext.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("find storage: got extension %q, which stores nothing; want one such as file_storage", id)
	}
	client, err := s.GetClient(ctx, component.KindExtension, self, "")
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	return &store{client: client}, nil
}

func (s *store) load(ctx context.Context) ([]byte, error) {
	data, err := s.client.Get(ctx, stateKey)
	if err != nil {
		return nil, fmt.Errorf("read storage: %w", err)
	}
	return data, nil
}

func (s *store) save(ctx context.Context, data []byte) error {
	if data == nil {
		return errors.New("write storage: got no state; want one")
	}
	if err := s.client.Set(ctx, stateKey, data); err != nil {
		return fmt.Errorf("write storage: %w", err)
	}
	return nil
}

func (s *store) close(ctx context.Context) error {
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}
