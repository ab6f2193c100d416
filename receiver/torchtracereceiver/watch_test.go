package torchtracereceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTrackerReadsEachStableVersionOnce(t *testing.T) {
	early := time.Unix(100, 0)
	late := early.Add(time.Second)
	small, big, rewritten := version{10, early}, version{20, late}, version{20, late.Add(1)}
	var tr tracker
	for i, poll := range []struct {
		versions    map[string]version
		ready, gone []string
	}{
		{versions: map[string]version{"a": small}},
		{versions: map[string]version{"a": big}}, // it grew: not ready
		{versions: map[string]version{"a": big, "b": small}, ready: []string{"a"}},
		{versions: map[string]version{"a": big, "b": small}, ready: []string{"b"}},
		{versions: map[string]version{"a": big, "b": small}}, // nothing new
		{versions: map[string]version{"a": rewritten, "b": small}},
		{versions: map[string]version{"a": rewritten, "b": small}, ready: []string{"a"}}, // same size, other content
		{versions: map[string]version{"b": small}, gone: []string{"a"}},
		{versions: map[string]version{"a": rewritten, "b": small}}, // it came back: a new file
		{versions: map[string]version{"a": rewritten, "b": small}, ready: []string{"a"}},
		{versions: map[string]version{}, gone: []string{"a", "b"}},
	} {
		var found []string
		for _, path := range []string{"a", "b"} {
			if _, ok := poll.versions[path]; ok {
				found = append(found, path)
			}
		}
		ready, gone := tr.due(found, poll.versions)
		assert.Equal(t, poll.ready, ready, "poll %d", i)
		assert.ElementsMatch(t, poll.gone, gone, "poll %d", i)
		assert.Len(t, tr.files, len(found), "no more is remembered than was found")
	}
}

func TestTrackerKeepsTheOrder(t *testing.T) {
	var tr tracker
	versions := map[string]version{"r2": {}, "r10": {}, "r1": {}}
	found := []string{"r1", "r2", "r10"}
	for path := range versions {
		versions[path] = version{size: 1}
	}
	tr.due(found, versions)
	ready, _ := tr.due(found, versions)
	assert.Equal(t, found, ready)
}
