// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// childAttributes puts a worker in a process group of its own, so that Ctrl-C
// reaches it through us, and ends it with the thread that started it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
