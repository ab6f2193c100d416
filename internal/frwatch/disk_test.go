// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file system that does not answer holds up nobody for longer than the limit, and is left
// alone until it does.
func TestAFileSystemThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Disk
		back := make(chan struct{})
		hangs := func() int { <-back; return 1 }
		answers := func() int { return 2 }
		began := time.Now()
		_, err := Do(t.Context(), &d, "/nfs/a", time.Second, hangs)
		assert.EqualError(t, err, "wait for file system of /nfs/a: it does not answer, and is left alone until it does")
		assert.Equal(t, time.Second, time.Since(began))

		_, err = Do(t.Context(), &d, "/nfs/a", time.Second, answers)
		assert.EqualError(t, err, "wait for file system of /nfs/a: it does not answer, and is left alone until it does")
		assert.Equal(t, time.Second, time.Since(began), "waited again")
		v, err := Do(t.Context(), &d, "/tmp", time.Second, answers)
		require.NoError(t, err)
		assert.Equal(t, 2, v)

		close(back)
		synctest.Wait()
		v, err = Do(t.Context(), &d, "/nfs/a", time.Second, answers)
		require.NoError(t, err)
		assert.Equal(t, 2, v)
	})
}

func TestCallsThatDoNotComeBackAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Disk
		back := make(chan struct{})
		for i := range maxStuck {
			_, err := Do(t.Context(), &d, strconv.Itoa(i), time.Second, func() bool { <-back; return true })
			require.Error(t, err)
		}
		_, err := Do(t.Context(), &d, "/tmp", time.Second, func() bool { return true })
		assert.EqualError(t, err, "wait for file system of /tmp: 32 calls of others have not come back; want less than 32")
		close(back)
		synctest.Wait()
		ok, err := Do(t.Context(), &d, "/tmp", time.Second, func() bool { return true })
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

// Who stops does not wait for a file system.
func TestTheEndWaitsForNoFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Disk
		back := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := Do(ctx, &d, "/nfs/a", time.Hour, func() bool { <-back; return true })
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(began))
		close(back)
	})
}

// Of two that ask one place at once, one does.
func TestOneAsksAPlaceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Disk
		var asked atomic.Int64
		back := make(chan struct{})
		for range 20 {
			go func() {
				_, _ = Do(t.Context(), &d, "/nfs/a", time.Second, func() bool { asked.Add(1); <-back; return true })
			}()
		}
		synctest.Wait()
		assert.EqualValues(t, 1, asked.Load())
		close(back)
	})
}
