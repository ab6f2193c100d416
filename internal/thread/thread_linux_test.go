// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nice returns the nice value of the calling thread. The system call returns 20 less it.
func nice(t *testing.T) int {
	t.Helper()
	p, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	require.NoError(t, err)
	return 20 - p
}

func TestThread_Calls_RunOnOneThreadOfItsPriority(t *testing.T) {
	th, err := Start(Config{Nice: 11})
	require.NoError(t, err)
	defer th.Stop()
	ids := map[int]bool{}
	for range 50 {
		require.NoError(t, th.Do(t.Context(), func() {
			ids[unix.Gettid()] = true
			assert.Equal(t, 11, nice(t))
		}))
	}
	assert.Len(t, ids, 1)
}

func TestThread_Stopped_IsGone(t *testing.T) {
	th, err := Start(Config{Nice: 12})
	require.NoError(t, err)
	var id int
	require.NoError(t, th.Do(t.Context(), func() { id = unix.Gettid() }))
	th.Stop()
	th.Stop()
	require.ErrorIs(t, th.Do(t.Context(), func() {}), ErrStopped)
	if id == os.Getpid() {
		t.Skip("the goroutine got the first thread of the process, which no program can end")
	}
	task := "/proc/self/task/" + strconv.Itoa(id)
	assert.Eventually(t, func() bool {
		_, err := os.Stat(task)
		return os.IsNotExist(err)
	}, time.Minute, time.Millisecond)
}

func TestThread_Cores_AreThoseOfTheThread(t *testing.T) {
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	first := 0
	for !may.IsSet(first) {
		first++
	}
	th, err := Start(Config{Cores: []int{first}})
	require.NoError(t, err)
	defer th.Stop()
	require.NoError(t, th.Do(t.Context(), func() {
		var have unix.CPUSet
		require.NoError(t, unix.SchedGetaffinity(0, &have))
		assert.Equal(t, 1, have.Count())
		assert.True(t, have.IsSet(first))
	}))
	var after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(os.Getpid(), &after))
	assert.Equal(t, may.Count(), after.Count(), "those of the process stay")
}

func TestThread_Work_IsMeasured(t *testing.T) {
	th, err := Start(Config{})
	require.NoError(t, err)
	defer th.Stop()
	require.NoError(t, th.Do(t.Context(), func() { time.Sleep(20 * time.Millisecond) }))
	slept := th.CPU()
	var worked time.Duration
	require.NoError(t, th.Do(t.Context(), func() {
		begin := cpuTime()
		for cpuTime()-begin < 20*time.Millisecond { //nolint:revive // work
		}
		worked = cpuTime() - begin
	}))
	assert.GreaterOrEqual(t, th.CPU()-slept, worked)
}

func TestStart_WhatIsNotThere_IsRefused(t *testing.T) {
	for want, c := range map[string]Config{
		"start thread: got nice 20; want 0 to 19":                                                     {Nice: 20},
		"start thread: got nice -1; want 0 to 19":                                                     {Nice: -1},
		"start thread: set cores: got core 1023, which is not there or which the process may not use": {Cores: []int{1023}},
	} {
		_, err := Start(c)
		assert.EqualError(t, err, want)
	}
}

func TestThread_ContextIsDone_CallIsNotRun(t *testing.T) {
	th, err := Start(Config{})
	require.NoError(t, err)
	defer th.Stop()
	begun, end := make(chan struct{}), make(chan struct{})
	over := make(chan error)
	go func() { over <- th.Do(context.Background(), func() { close(begun); <-end }) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = th.Do(ctx, func() { t.Error("run") })
	require.ErrorIs(t, err, context.Canceled)
	close(end)
	require.NoError(t, <-over)
}
