// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// rankKey is one rank of one life of one job.
type rankKey struct {
	job, incarnation string
	rank             int64
}

// claims knows which file speaks for which part of which rank.
type claims struct {
	limit  int // files
	byRank map[rankKey]map[string]extent
	byFile map[string]rankKey
}

func newClaims(limit int) *claims {
	return &claims{limit: limit, byRank: map[rankKey]map[string]extent{}, byFile: map[string]rankKey{}}
}

// take gives the file its part of the rank, or says why not. A file read again
// replaces its own claim.
func (c *claims) take(file string, r *model.Rank, e *extent) (Reason, error) {
	c.forget(file)
	key := rankKey{r.JobID, r.Incarnation, r.Rank}
	if holder := c.holder(key, e); holder != "" {
		return RankTaken, fmt.Errorf("claim rank %d: got it from %s, which was read first and covers the same steps or time; want one file", r.Rank, holder)
	}
	if len(c.byFile) >= c.limit {
		return OverLimit, fmt.Errorf("claim rank %d: got more than %d files; want at most that", r.Rank, c.limit)
	}
	if c.byRank[key] == nil {
		c.byRank[key] = map[string]extent{}
	}
	c.byRank[key][file] = *e
	c.byFile[file] = key
	return "", nil
}

// holder returns the file, the first by name, that has what e covers.
func (c *claims) holder(key rankKey, e *extent) (file string) {
	for other, held := range c.byRank[key] {
		if held.overlaps(e) && (file == "" || other < file) {
			file = other
		}
	}
	return file
}

// forget gives up what a file had claimed.
func (c *claims) forget(file string) {
	key, ok := c.byFile[file]
	if !ok {
		return
	}
	delete(c.byFile, file)
	delete(c.byRank[key], file)
	if len(c.byRank[key]) == 0 {
		delete(c.byRank, key)
	}
}
