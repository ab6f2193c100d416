// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// childAttributes is nothing here: the rings and the plugin are Linux's.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
