// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
)

// ofBarrier reads "[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms", "Rank 0 timed out waiting for
// rank(s) 3 in monitoredBarrier", "Rank 0 timed out in monitoredBarrier after 5 ms." and "Rank 3 successfully reached
// monitoredBarrier, but received errors".
func ofBarrier(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	subject, _, failed := strings.Cut(s, " failed to pass ")
	switch {
	case failed:
		at := strings.LastIndex(subject, "ank")
		if at < 1 {
			return st, false
		}
		var list string
		list, st.whole = subject[at+len("ank"):], strings.HasPrefix(subject[at:], "anks ")
		st.late = rankList(list)
		st.by = lastRank(subject[:at-1])
	case strings.Contains(s, " timed out "):
		subject, late, _ := strings.Cut(s, " timed out ")
		st.by = lastRank(subject)
		if _, list, waits := strings.Cut(late, "waiting for rank"); waits {
			st.late, st.whole = rankList(list), true
		}
	case strings.Contains(s, " successfully reached "):
		subject, _, _ := strings.Cut(s, " successfully reached ")
		if rank := lastRank(subject); rank >= 0 {
			st.by, st.came = rank, []int64{rank}
		}
	}
	for _, mark := range []string{" in ", " after "} {
		if n, ok := after([]byte(s), "onitoredBarrier"+mark); ok && n > 0 {
			st.ran = n
		}
	}
	return st, len(st.late) > 0 || st.by >= 0
}

// ofStore reads "Timed out initializing process group in store based barrier on rank: 2, for key:
// store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)".
func ofStore(s string) (st statement, ok bool) {
	line := []byte(s)
	rank, ok := after(line, string(markStore))
	world, known := after(line, "world_size=")
	joined, counted := after(line, "worker_count=")
	if !counted {
		joined, counted = after(line, "num_workers_joined=")
	}
	if !ok || !known || !counted || !strings.Contains(s, ", timeout") || rank < 0 || rank > maxRank || world < 1 || world > maxRank+1 {
		return st, false
	}
	st.by, st.rank = rank, -1
	if joined >= world {
		st.note = fmt.Sprintf("rank %d reports that the start of a group timed out although %d processes came for %d places: more processes were started, or the store is of an earlier start", rank, joined, world)
		return st, true
	}
	st.came, st.world = []int64{rank}, world
	return st, true
}

// ofOthersWait reads "Timed out after 1801 seconds waiting for clients. 1/3 clients joined." and what HCCL reports of
// the neighbour that a rank of a group waits for: neither names the rank that is the cause.
func ofOthersWait(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	if i := strings.Index(s, string(markJoined)); i >= 0 && strings.Contains(s[:i], "imed out after ") {
		count := s[strings.LastIndexByte(s[:i], ' ')+1 : i]
		joined, total, found := strings.Cut(count, "/")
		if !found || strings.Trim(joined+total, "0123456789") != "" {
			return st, false
		}
		st.note = fmt.Sprintf("the store of the job reports that %s of %s processes came", joined, total)
		return st, true
	}
	_, rest, ok := strings.Cut(s, string(markNotify))
	if !ok {
		return st, false
	}
	remote, _, whole := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	if !whole || len(remote) > maxOp {
		return st, false
	}
	st.note = fmt.Sprintf("a rank of a group of HCCL reports that nothing came from rank %s of that group", remote)
	return st, true
}

// lastRank reads the rank at the end of a text: "[Rank 0]: ", "Rank 3"; -1: there is none.
func lastRank(s string) int64 {
	at := strings.LastIndex(s, "ank ")
	if at < 0 {
		return -1
	}
	if n, _, ok := number([]byte(s[at+len("ank "):])); ok && n >= 0 && n <= maxRank {
		return n
	}
	return -1
}

// rankList reads "s 4, 5", "(s) 3", " [1, 2]".
func rankList(s string) (ranks []int64) {
	s = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(s, "(s)"), "s"), " :[(")
	for len(ranks) < maxStatements {
		n, length, ok := number([]byte(s))
		if !ok || n < 0 || n > maxRank {
			return ranks
		}
		ranks = append(ranks, n)
		rest := strings.TrimLeft(s[length:], " ,")
		if rest == s[length:] {
			return ranks
		}
		s = rest
	}
	return ranks
}
