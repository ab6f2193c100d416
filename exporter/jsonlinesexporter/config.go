// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"errors"
	"fmt"
)

// Config configures the json_lines exporter.
type Config struct {
	// Path is the file that lines are appended to. Its directory must exist.
	Path string `mapstructure:"path"`
	// Rotation bounds the file; without it the file grows.
	Rotation *RotationConfig `mapstructure:"rotation"`

	_ struct{}
}

// RotationConfig bounds a file and its backups.
type RotationConfig struct {
	// MaxMegabytes is the size that the file does not exceed, in 2^20 bytes; a line that is larger
	// has a file of its own.
	MaxMegabytes int64 `mapstructure:"max_megabytes"`
	// MaxBackups is how many older files are kept.
	MaxBackups int `mapstructure:"max_backups"`

	_ struct{}
}

const (
	maxMegabytes = 1 << 20
	maxBackups   = 1000
)

func newDefaultConfig() *Config { return &Config{} }

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	if c.Path == "" {
		return errors.New("check path: got none; want a file, in a directory that exists")
	}
	if c.Rotation == nil {
		return nil
	}
	var errs []error
	if n := c.Rotation.MaxMegabytes; n < 1 || n > maxMegabytes {
		errs = append(errs, fmt.Errorf("check rotation::max_megabytes: got %d; want 1 to %d", n, maxMegabytes))
	}
	if n := c.Rotation.MaxBackups; n < 1 || n > maxBackups {
		errs = append(errs, fmt.Errorf("check rotation::max_backups: got %d; want 1 to %d", n, maxBackups))
	}
	return errors.Join(errs...)
}
