// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"errors"

	"go.opentelemetry.io/collector/component"
)

// Config configures the queue_storage extension.
type Config struct {
	// Storage is the extension that stores.
	Storage *component.ID `mapstructure:"storage"`
	// Directory is that of the storage's files. At the start, those of its files that are damaged are set aside; "": none
	// is looked at.
	Directory string `mapstructure:"directory"`

	_ struct{}
}

func newDefaultConfig() *Config { return &Config{} }

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	if c.Storage == nil {
		return errors.New("check storage: got none; want a storage extension such as file_storage")
	}
	return nil
}
