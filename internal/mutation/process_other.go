// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package mutation

import (
	"context"
	"os/exec"
)

// command returns a command that ends with ctx.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

func killGroup(*exec.Cmd) error { return nil }
