// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// maxSaid bounds the refusals of one look that are remembered until the next: as
	// many as rings are looked at. How many are beyond is counted as beyondMemory.
	maxSaid = 4096
	// beyondMemory is the reason of refusals that cannot be told from those of the
	// look before.
	beyondMemory = "beyond_memory"
	// toldEach is how many refusals of one look have a line of their own. More are
	// told of together: a collector's log drops lines of one message beyond ten in
	// ten seconds.
	toldEach = 4
	// settled is for how long a file was left alone until its stamps prove that it
	// is as it was: they are coarser than writes.
	settled = 2 * time.Second
)

// refusals remembers what was refused, so that each is told of and counted once for
// as long as it is there.
type refusals struct {
	known  map[string]refused // by path, of the last look
	seen   map[string]refused // of this one
	fresh  []error            // seen and not known
	beyond int                // of this look, not remembered
	was    int                // beyond, at the last look
	denied int                // of this look, for the owner or the permissions of a file
}

type refused struct {
	field string
	file  os.FileInfo // where its content is at fault; nil is opened again
}

func newRefusals() refusals {
	return refusals{known: map[string]refused{}, seen: map[string]refused{}}
}

// unchanged notes again a file whose content was refused and is as it was. Else it
// returns what the path leads to now.
func (r *refusals) unchanged(path string) (now os.FileInfo, same bool) {
	now, err := os.Lstat(path)
	if err != nil {
		return nil, false
	}
	k, ok := r.known[path]
	if !ok || k.file == nil || !os.SameFile(k.file, now) || k.file.Size() != now.Size() || !k.file.ModTime().Equal(now.ModTime()) {
		return now, false
	}
	r.seen[path] = k
	return now, true
}

// refuse notes a file, or the directory, that is not read.
func (rd *reader) refuse(err error) { rd.refuseFile(err, nil) }

// refuseFile is refuse for a file that was opened; before is its state before that.
func (rd *reader) refuseFile(err error, before os.FileInfo) {
	path, r := err.Error(), refused{field: "other"}
	var bad *ring.Error
	if errors.As(err, &bad) {
		if bad.Path == rd.cfg.Directory && errors.Is(err, os.ErrNotExist) {
			rd.wait()
			return
		}
		// What is wrong may move on, as the size of a file that grows.
		path, r.field = bad.Path, bad.Field
		if path != rd.cfg.Directory && (bad.Field == "owner" || errors.Is(bad, os.ErrPermission)) {
			rd.refused.denied++
		}
		if bad.Err == nil && before != nil && time.Since(before.ModTime()) > settled {
			r.file = before
		}
	}
	if !rd.refused.note(path, r, err) {
		rd.telemetry.ReceiverRankEventsRingsRefused.Add(rd.ctx, 1, reason(r.field))
	}
}

// note reports whether it was known, or cannot be.
func (r *refusals) note(path string, is refused, err error) bool {
	k, known := r.known[path]
	if !known && len(r.known)+len(r.fresh) >= maxSaid {
		r.beyond++
		return true
	}
	r.seen[path] = is
	if known && k.field == is.field {
		return true
	}
	r.fresh = append(r.fresh, err)
	return false
}

func (rd *reader) wait() {
	if !rd.waiting {
		rd.waiting = true
		rd.log.Warn("Directory of rings is not there yet", zap.String("directory", rd.cfg.Directory))
	}
}

// tellRefusals tells of what this look refused for the first time.
func (rd *reader) tellRefusals() {
	r := &rd.refused
	for _, err := range r.fresh[:min(len(r.fresh), toldEach)] {
		rd.log.Warn("Ring refused", zap.Error(err))
	}
	if more := len(r.fresh) - toldEach; more > 0 {
		rd.log.Warn(fmt.Sprintf("Rings refused: %d more than those above", more),
			zap.Errors("first", r.fresh[toldEach:min(len(r.fresh), 2*toldEach)]))
	}
	if r.beyond > 0 && r.was == 0 {
		rd.log.Warn("Too many refusals to remember: further ones are not named, and counted under a reason of their own",
			zap.Int("limit", maxSaid), zap.String("reason", beyondMemory))
	}
	if more := r.beyond - r.was; more > 0 {
		rd.telemetry.ReceiverRankEventsRingsRefused.Add(rd.ctx, int64(more), reason(beyondMemory))
	}
	r.next()
}

// total is how many files this look refused.
func (r *refusals) total() int { return len(r.seen) + r.beyond }

// next makes what this look refused what is known.
func (r *refusals) next() {
	r.known, r.seen = r.seen, r.known
	clear(r.seen)
	r.fresh, r.beyond, r.was = nil, 0, r.beyond
}
