// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const finding = `{
  "lockstep.finding.id": "7142b045c26c17f0",
  "lockstep.finding.class": "host",
  "links": [{"traceId": "0123456789abcdef0123456789abcdef", "spanId": "0123456789abcdef"}],
  "why": "7142b045c26c17f0 again",
  "incarnation": "42ab29f772e92fe1",
  "other": {"lockstep.finding.id": "aaaaaaaaaaaaaaaa"}
}`

func TestNormal_Ids_AreNumberedByFirstPlace(t *testing.T) {
	got := (&normal{}).apply(finding)

	assert.JSONEq(t, `{
  "lockstep.finding.id": "finding-id-1",
  "lockstep.finding.class": "host",
  "links": [{"traceId": "trace-id-1", "spanId": "span-id-1"}],
  "why": "finding-id-1 again",
  "incarnation": "42ab29f772e92fe1",
  "other": {"lockstep.finding.id": "finding-id-2"}
}`, got, "an incarnation is of the data")
}

func TestNormal_RenderedRecords_IdsAreNumbered(t *testing.T) {
	got := (&normal{}).apply("  lockstep.finding.id: 7142b045c26c17f0\n  spanId: 0123456789abcdef\n  parentSpanId: 0123456789abcdef\n")

	assert.Equal(t, "  lockstep.finding.id: finding-id-1\n  spanId: span-id-1\n  parentSpanId: span-id-1\n", got)
}

func TestNormal_TimesOfTheRun_AreMaskedAndThoseOfTheDataStay(t *testing.T) {
	at := time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)
	n := &normal{from: at.Add(-time.Minute), to: at.Add(time.Minute)}

	now, before := at.UnixNano(), at.Add(-24*time.Hour).UnixNano()
	for text, want := range map[string]string{
		"2026-11-29T20:00:10.478Z\twarn":     "<now>\twarn",
		"at 2026-11-29 20:00:59.5 UTC":       "at <now>",
		"since 2026-11-28 20:00:10.478 UTC":  "since 2026-11-28 20:00:10.478 UTC",
		fmt.Sprint("time: ", now):            "time: <now>",
		fmt.Sprint("time: ", now/1e9):        "time: <now>",
		fmt.Sprint("time: ", before):         fmt.Sprint("time: ", before),
		"bytes: 9223372036854775807 of 1024": "bytes: 9223372036854775807 of 1024",
		"floats: 41216000000":                "floats: 41216000000",
	} {
		assert.Equal(t, want, n.apply(text))
	}
}

func TestNormal_FoldersProcessesAndPlaces_AreMasked(t *testing.T) {
	n := &normal{folders: map[string]string{"/a": "<a>", "/a/b": "<b>"}}

	assert.Equal(t, "<b>/x and <a>/y", n.apply("/a/b/x and /a/y"), "the longest first")
	assert.Equal(t, "pid=<pid> took <duration>", n.apply("pid=1234 took 1.25s"))
	assert.Equal(t, "pkg/file.go\twarn", n.apply("pkg/file.go:128\twarn"))
	assert.Equal(t, `"service.instance.id": "<instance>"`, n.apply(`"service.instance.id": "9b7696ac-2075-4066-973b-c8bbadde7d14"`))
}
