// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

// Config configures the fleet_version receiver.
type Config struct {
	// PollInterval is how often files of the system are looked at.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Heartbeat is how often everything is looked at, programs and NCCL are asked, and all is told again.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// Timeout is how long a program, NCCL's RAS, or the system's files, may take.
	Timeout time.Duration `mapstructure:"timeout"`
	// RootPath is where the node's file system is, as /hostfs in a container.
	RootPath string `mapstructure:"root_path"`
	// LibraryPaths are the folders below RootPath that may have the driver's libraries.
	LibraryPaths []string `mapstructure:"library_paths"`
	// NvidiaSMI and FabricManager are the programs that are asked; empty: none is.
	NvidiaSMI     string `mapstructure:"nvidia_smi"`
	FabricManager string `mapstructure:"fabric_manager"`
	// NCCLRAS is where NCCL processes of this node answer for their RAS, host:port; empty: none is
	// asked.
	NCCLRAS string `mapstructure:"nccl_ras"`
	// ContainerImage is the image that the node's work runs in; ContainerImageFile a file that
	// says it, which is read where ContainerImage is empty.
	ContainerImage     string `mapstructure:"container_image"`
	ContainerImageFile string `mapstructure:"container_image_file"`
	// Node and HostID name this machine; empty: its host name, and its id.
	Node   string `mapstructure:"node"`
	HostID string `mapstructure:"host_id"`

	_ struct{}
}

const (
	// defaultPollInterval: reading some tens of small files takes milliseconds.
	defaultPollInterval = time.Minute
	// defaultHeartbeat: asking nvidia-smi takes seconds of a processor.
	defaultHeartbeat = 5 * time.Minute
	// defaultTimeout: without persistence mode the driver wakes each GPU first, a second or two each.
	defaultTimeout = 30 * time.Second

	minInterval     = time.Second
	maxLibraryPaths = 64
)

func newDefaultConfig() *Config {
	return &Config{
		PollInterval: defaultPollInterval, Heartbeat: defaultHeartbeat, Timeout: defaultTimeout, RootPath: "/",
		LibraryPaths: fleet.LibraryFolders(),
		NvidiaSMI:    "nvidia-smi", FabricManager: "nv-fabricmanager",
		// NCCLRAS is empty: who asks one process of a job has all of them answer.
	}
}

// files are where the versions lie that are read.
func (c *Config) files() fleet.Files {
	f := fleet.Files{
		Proc: filepath.Join(c.RootPath, "proc"), Sys: filepath.Join(c.RootPath, "sys"),
		Image: c.ContainerImage, ImageFile: c.ContainerImageFile,
	}
	for _, dir := range c.LibraryPaths {
		f.Libraries = append(f.Libraries, filepath.Join(c.RootPath, dir))
	}
	return f
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.PollInterval >= minInterval, "check poll_interval: got %v; want at least %v, with a unit", c.PollInterval, minInterval)
	check(c.Heartbeat >= c.PollInterval, "check heartbeat: got %v; want at least poll_interval, %v", c.Heartbeat, c.PollInterval)
	check(c.Timeout >= minInterval, "check timeout: got %v; want at least %v, with a unit", c.Timeout, minInterval)
	check(filepath.IsAbs(c.RootPath), "check root_path: got %q; want a path from the root", c.RootPath)
	check(len(c.LibraryPaths) <= maxLibraryPaths, "check library_paths: got %d; want at most %d", len(c.LibraryPaths), maxLibraryPaths)
	if c.NCCLRAS != "" {
		if err := ras.CheckAddress(c.NCCLRAS); err != nil {
			errs = append(errs, fmt.Errorf("check nccl_ras: %w", err))
		}
	}
	return errors.Join(errs...)
}
