// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
)

// Limits of files that programs write, bytes: many times what they come to.
const (
	maxTruth = 16 << 20
	maxLog   = 16 << 20
)

// readTruths reads what the ranks of a job wrote of themselves, by rank; those that wrote
// nothing are left out.
func readTruths[T any](dir string, world int) (list []*T, err error) {
	for rank := range world {
		text, err := kit.ReadFile(filepath.Join(dir, fmt.Sprintf("truth-%d.json", rank)), maxTruth)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return list, fmt.Errorf("read truth of rank %d: %w", rank, err)
		}
		t := new(T)
		if err := json.Unmarshal(text, t); err != nil {
			return list, fmt.Errorf("read truth of rank %d: %w", rank, err)
		}
		list = append(list, t)
	}
	return list, nil
}
