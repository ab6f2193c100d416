// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// child is a process that ends with the lab, also where the lab is killed.
type child struct {
	cmd *exec.Cmd
	log *os.File
}

// startChild starts a program, in a namespace where one is named. What it says goes to a
// file of the folder; its standard output where out is given.
func startChild(ctx context.Context, dir, namespace string, out io.Writer, in io.Reader, program string, args ...string) (*child, error) {
	log, err := os.CreateTemp(dir, filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	if namespace != "" {
		program, args = "ip", append([]string{"netns", "exec", namespace, program}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Stdin = log, log, in
	if out != nil {
		cmd.Stdout = out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	// Those that it started may hold its output open.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &child{cmd, log}, nil
}

// stop ends the process and all that it started.
func (c *child) stop() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	_ = c.cmd.Wait()
	c.log.Close()
}

// said is the end of what the process wrote to its log.
func (c *child) said() string {
	content, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(content[max(0, len(content)-most):])
}

type children []*child

func (cs *children) start(ctx context.Context, dir, namespace, program string, args ...string) error {
	c, err := startChild(ctx, dir, namespace, nil, nil, program, args...)
	if err == nil {
		*cs = append(*cs, c)
	}
	return err
}

func (cs *children) stop() {
	for _, c := range *cs {
		c.stop()
	}
}

// startLoad keeps every core busy with processes of their own.
func startLoad(ctx context.Context, dir string) (*children, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	cs := &children{}
	for range runtime.NumCPU() {
		if err := cs.start(ctx, dir, "", self, "spin"); err != nil {
			cs.stop()
			return nil, err
		}
	}
	return cs, nil
}

// spin keeps a core busy until the process is killed.
func spin() {
	for x := uint64(1); x != 0; x |= 1 {
		x *= 3
	}
}
