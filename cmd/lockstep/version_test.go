// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDescribe_EachBuild_NamesWhatIsRecorded(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	date := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-28T09:00:00Z"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}

	assert.Empty(t, describe(nil))
	assert.Equal(t, " commit 0123456789ab of 2026-11-28", describe([]debug.BuildSetting{commit, date}))
	assert.Equal(t, " commit 0123456789ab, modified", describe([]debug.BuildSetting{commit, modified}))
}
