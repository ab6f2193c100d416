// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
)

// workerOf returns the process of a rank that the demo started.
func workerOf(demo int, rank string) (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args := bytes.Split(line, []byte{0})
		at := slices.IndexFunc(args, func(a []byte) bool { return string(a) == "--rank" })
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if at >= 0 && at+1 < len(args) && string(args[at+1]) == rank && parentOf(pid) == demo {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find the worker of rank %s: got none of process %d", rank, demo)
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return -1
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 2 {
		return -1
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// trace attaches to every thread of a process, as a debugger does that shows where it is.
func trace(pid int) (done func(), err error) {
	attached, release := make(chan error), make(chan struct{})
	released := make(chan struct{})
	go func() { // one thread traces: the kernel knows tracers by thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(released)
		threads, err := attach(pid)
		attached <- err
		<-release
		for _, tid := range threads {
			_ = syscall.PtraceDetach(tid) // an error says that it has ended
		}
	}()
	done = func() {
		close(release)
		<-released
	}
	if err := <-attached; err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func attach(pid int) (threads []int, err error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, fmt.Errorf("list threads of a worker: %w", err)
	}
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		if err := syscall.PtraceAttach(tid); err != nil {
			return threads, fmt.Errorf("attach to a thread of a worker: %w", err)
		}
		threads = append(threads, tid)
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(tid, &status, syscall.WALL, nil); err != nil {
			return threads, fmt.Errorf("wait for a thread of a worker to stop: %w", err)
		}
	}
	return threads, nil
}
