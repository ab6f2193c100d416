// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/probe"
)

const (
	// tellAgain is how often the log is told of what goes on going wrong.
	tellAgain = time.Minute
	// silentAfter is how long a member that does not answer may only be starting.
	silentAfter = 30 * time.Second
	maxNamed    = 8 // members in one line of the log
)

// teller tells the log of what goes wrong in every window, once in tellAgain for
// each reason. It is the node's goroutine's.
type teller struct {
	log    *zap.Logger
	counts map[string]int64        // when they were looked at last
	from   map[string][]netip.Addr // whose packets were refused, by reason, and not told yet
	told   map[string]time.Time    // by a reason of this package: as many as there are
	mute   map[string]time.Time    // end points that do not answer, since when
}

func newTeller(log *zap.Logger) teller {
	return teller{log: log, counts: map[string]int64{}, from: map[string][]netip.Addr{}, told: map[string]time.Time{}}
}

// may says whether it is time to tell of a reason, and that it is told.
func (t *teller) may(now time.Time, reason string) bool {
	if last, ok := t.told[reason]; ok && now.Sub(last) < tellAgain {
		return false
	}
	t.told[reason] = now
	return true
}

// refused tells of n things that somebody did not take.
func (t *teller) refused(now time.Time, what string, n int, err error) {
	if t.may(now, what) {
		t.log.Warn(what, zap.Int("count", n), zap.Error(err))
	}
}

// counted tells of the counters that grow and make a measurement worthless.
func (t *teller) counted(now time.Time, o *probe.Outcome) {
	maps.Copy(t.from, o.Refused)
	for _, w := range []struct{ reason, what string }{
		{"clock.other_owner", "two nodes say that one clock is theirs: hosts made from one image share an id; set host_id. Measurements of both are left out"},
		{"clock.crossed", "a peer's stamps cannot be: it says that it held a packet for longer than we waited for it, or tells one reading of two packets"},
		{"clock.own", "a peer says that it is our host: hosts made from one image share an id; set host_id. Its measurements are left out"},
		{"clock.copied", "another machine was resumed from the memory of this one, and bears its name: boot one of them"},
		{"clock.edges_withheld", "a peer bears the name of our clock, and may be a copy of this machine: no edges are sent until it is silent"},
		{"clock.many", "a node changes the name of its clock too often: its measurements are left out"},
		{"clock.unusable", "answers name no host's clock, or what they say was refused: another version of the probe, or somebody changes packets"},
		{"clock.over_limit", "clocks beyond max_clocks are left out"},
		{"node.send_errors", "packets cannot be sent: check that endpoints are addresses of this host from which the members are reached"},
		{"sender.forged", "replies came that are not signed with our key"},
		{"sender.mismatched", "replies came that are not to what was sent: somebody forges them, or they are on their way twice"},
		{"reflector.forged", "packets came that are not signed with our key, or not at all"},
		{"reflector.signed", "packets came that are signed, and this node has no key: set auth as on the others"},
		{"reflector.looped", "packets came that are no requests: somebody sends replies back"},
		{"reflector.stranger", "packets came from addresses that are not among the members, and were not answered: are all lists the same?"},
		{"reflector.full", "more sessions than the limit: requests of new peers are not answered"},
		{"reflector.limited", "a peer asks more than its share: requests beyond are not answered, and count there as lost"},
		{"reflector.replayed", "requests came a second time and were not answered: somebody repeats them"},
	} {
		n := o.Counters[w.reason]
		if n > t.counts[w.reason] && t.may(now, w.reason) {
			fields := []zap.Field{zap.String("reason", w.reason), zap.Int64("count", n)}
			if from := t.from[w.reason]; len(from) > 0 {
				fields = append(fields, zap.Stringers("from", from))
				delete(t.from, w.reason)
			}
			t.log.Warn("Probe mesh: "+w.what, fields...)
		}
		t.counts[w.reason] = n
	}
}

// silent tells of the members none of whose requests were answered for some time.
func (t *teller) silent(now time.Time, trips []probe.TripStats) {
	sent, unanswered := map[string]int64{}, map[string]int64{}
	for i := range trips {
		sent[trips[i].Dst] += trips[i].Sent
		unanswered[trips[i].Dst] += trips[i].Unanswered
	}
	mute, long := map[string]time.Time{}, []string{}
	for peer, n := range sent {
		since, was := t.mute[peer]
		switch {
		case unanswered[peer] < n: // it answers
			continue
		case !was:
			since = now
		}
		mute[peer] = since
		if now.Sub(since) >= silentAfter {
			long = append(long, peer)
		}
	}
	t.mute = mute
	if len(long) > 0 && t.may(now, "silent") {
		slices.Sort(long)
		t.log.Warn("Members do not answer: does owd_probe run there, with the same key, and is UDP open both ways?",
			zap.Int("count", len(long)), zap.Strings("members", long[:min(len(long), maxNamed)]))
	}
}
