// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// normal removes from an output what may differ without meaning.
type normal struct {
	// folders are replaced by their labels.
	folders map[string]string
	// from and to bound the time in which the programs ran: a time between them is one of the
	// run, and not one of the data.
	from, to time.Time
}

// Keys of ids. What an id is does not matter; which places have the same one does.
var idKeys = map[string]string{
	"lockstep.finding.id": "finding", "finding_id": "finding", "lockstep.incident.id": "incident",
	"traceId": "trace", "trace_id": "trace", "spanId": "span", "span_id": "span", "parentSpanId": "span",
}

var (
	keyed = regexp.MustCompile(`(?:^|["\s.])(lockstep\.finding\.id|lockstep\.incident\.id|finding_id|traceId|trace_id|spanId|span_id|parentSpanId)"?\s*[:=]\s*"?([0-9A-Za-z_-]{6,})`)
	token = regexp.MustCompile(`[0-9A-Za-z_-]{6,}`)

	process  = regexp.MustCompile(`\b(pid["=: ]+)\d+`)
	took     = regexp.MustCompile(`\b((?:took|elapsed|within|after) )\d[\dhms.µn]*s\b`)
	instance = regexp.MustCompile(`(service\.instance\.id"?: ?"?)[0-9a-f-]{36}`)
	face     = regexp.MustCompile(`("otelcol\.signal(?:\.output)?": )"\w+"`)
	source   = regexp.MustCompile(`\b(\w+/\w+\.go):\d+\b`)
	tests    = regexp.MustCompile(`\(\d+\.\d+s\)`)
	longest  = regexp.MustCompile(`\b\d{10,19}\b`)
	stamp    = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?`)
	temporal = regexp.MustCompile(`/lockstep-compare-\d+/(?:base-tree|base|head)\b`)
)

// apply returns the text without what may differ.
func (n *normal) apply(text string) string {
	folders := make([]string, 0, len(n.folders))
	for f := range n.folders {
		folders = append(folders, f)
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	for _, f := range folders {
		text = strings.ReplaceAll(text, f, n.folders[f])
	}
	text = temporal.ReplaceAllString(text, "/<temporary>")
	text = process.ReplaceAllString(text, "${1}<pid>")
	text = took.ReplaceAllString(text, "${1}<duration>")
	text = instance.ReplaceAllString(text, "${1}<instance>")
	text = face.ReplaceAllString(text, "${1}<any>") // instances of a connector share an analysis, and any of them logs
	text = source.ReplaceAllString(text, "${1}")
	text = tests.ReplaceAllString(text, "(<duration>)")
	if !n.from.IsZero() {
		text = longest.ReplaceAllStringFunc(text, n.number)
		text = stamp.ReplaceAllStringFunc(text, n.stamp)
	}
	return numberIDs(text)
}

// number masks a Unix time of the run in any unit.
func (n *normal) number(digits string) string {
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return digits
	}
	unit := int64(1)
	for range 19 - len(digits) {
		unit *= 10
	}
	if v > math.MaxInt64/unit {
		return digits
	}
	return n.mask(time.Unix(0, v*unit), digits)
}

func (n *normal) stamp(text string) string {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999 UTC", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04 UTC", "2006-01-02 15:04",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return n.mask(at, text)
		}
	}
	return text
}

func (n *normal) mask(at time.Time, text string) string {
	if at.Before(n.from) || at.After(n.to) {
		return text
	}
	return "<now>"
}

// numberIDs replaces each id by its kind and the number of its first place, wherever it stands.
func numberIDs(text string) string {
	names := map[string]string{}
	count := map[string]int{}
	for _, m := range keyed.FindAllStringSubmatch(text, -1) {
		if _, ok := names[m[2]]; ok {
			continue
		}
		kind := idKeys[m[1]]
		count[kind]++
		names[m[2]] = fmt.Sprintf("%s-id-%d", kind, count[kind])
	}
	if len(names) == 0 {
		return text
	}
	return token.ReplaceAllStringFunc(text, func(t string) string { return cmp.Or(names[t], t) })
}
