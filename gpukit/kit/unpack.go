// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxProgram bounds the unpacked command, bytes.
const maxProgram = 256 << 20

// Unpack makes Lockstep return a command that runs: that of the kit, else one unpacked
// into the first of the folders that can run it. The caller calls remove, which is never
// nil, after the last use. The error names for each folder why it cannot.
func (k *Kit) Unpack(ctx context.Context, folders ...string) (remove func(), err error) {
	packed := k.Lockstep() + ".gz"
	if exists(k.Lockstep()) {
		return func() {}, nil
	}
	var reasons []string
	for _, folder := range folders {
		dir, err := os.MkdirTemp(folder, "lockstep-gpu-bin-")
		if err == nil {
			path := filepath.Join(dir, "lockstep")
			if err = k.unpack(ctx, packed, path); err == nil {
				k.lockstep = path
				return func() { _ = os.RemoveAll(dir) }, nil // scratch
			}
			_ = os.RemoveAll(dir) // scratch
		}
		reasons = append(reasons, err.Error())
	}
	return func() {}, fmt.Errorf("unpack lockstep: %s: -work names a folder with 300 MB where programs may run", strings.Join(reasons, "; "))
}

func (k *Kit) unpack(ctx context.Context, from, to string) error {
	if err := gunzip(from, to); err != nil {
		return err
	}
	_, err := k.Run(ctx, Command{Path: to, Args: []string{"version"}, Limit: 30 * time.Second})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (mounted noexec?)", err)
	}
	return err
}

func gunzip(from, to string) error {
	packed, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open kit: %w", err)
	}
	defer packed.Close()
	program, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("make program: %w", err)
	}
	zip, err := gzip.NewReader(packed)
	if err == nil {
		_, err = io.Copy(program, io.LimitReader(zip, maxProgram))
	}
	if err = errors.Join(err, program.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(from), err)
	}
	return nil
}
