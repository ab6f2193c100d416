package rankeventsreceiver

import (
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// maxSaid bounds the refusals of one look that are remembered until the next: as
	// many as rings are looked at. What is beyond is neither told of nor counted.
	maxSaid = 4096
	// toldEach is how many refusals of one look have a line of their own. More are
	// told of together: a collector's log drops lines of one message beyond ten in
	// ten seconds.
	toldEach = 4
)

// refusals remembers what was refused, so that each is told of and counted once for
// as long as it is there.
type refusals struct {
	known map[string]bool // by the last look
	seen  map[string]bool // by this one
	fresh []error         // seen and not known
	over  bool            // it was told that there are too many
}

// refuse notes a file, or the directory, that is not read.
func (rd *reader) refuse(err error) {
	key, why := err.Error(), "other"
	var bad *ring.Error
	if errors.As(err, &bad) {
		if bad.Path == rd.cfg.Directory && errors.Is(err, os.ErrNotExist) {
			rd.wait()
			return
		}
		// What is wrong may move on, as the size of a file that grows.
		key, why = bad.Path+"\x00"+bad.Field, bad.Field
	}
	r := &rd.refused
	if len(r.seen) >= maxSaid {
		return
	}
	r.seen[key] = true
	if r.known[key] {
		return
	}
	r.fresh = append(r.fresh, err)
	rd.telemetry.ReceiverRankEventsRingsRefused.Add(rd.ctx, 1, reason(why))
}

func (rd *reader) wait() {
	if !rd.waiting {
		rd.waiting = true
		rd.log.Info("Directory of rings is not there yet", zap.String("directory", rd.cfg.Directory))
	}
}

// tellRefusals tells of what this look refused for the first time.
func (rd *reader) tellRefusals() {
	fresh := rd.refused.fresh
	rd.refused.fresh = nil
	for _, err := range fresh[:min(len(fresh), toldEach)] {
		rd.log.Warn("Ring refused", zap.Error(err))
	}
	if more := len(fresh) - toldEach; more > 0 {
		rd.log.Warn(fmt.Sprintf("Rings refused: %d more than those above", more),
			zap.Errors("first", fresh[toldEach:min(len(fresh), 2*toldEach)]))
	}
	r := &rd.refused
	if over := len(r.seen) >= maxSaid; over != r.over {
		r.over = over
		if over {
			rd.log.Warn("Too many refusals to remember: further ones are not told of", zap.Int("limit", maxSaid))
		}
	}
	r.known, r.seen = r.seen, r.known
	clear(r.seen)
}
