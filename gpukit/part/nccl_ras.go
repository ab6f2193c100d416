// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ras"
)

const (
	rasTimeout = 6 * time.Second
	rasBytes   = 8 << 20
)

// rasFunctions are the functions that NCCL's RAS counts.
var rasFunctions = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// compareRAS compares what NCCL's RAS counts with what the ranks did, and returns how
// many operations it counts.
func compareRAS(s *ras.Status, truths []*ncclTruth, seen []*ncclSeen) (counted int, problems []string) {
	for _, t := range truths {
		groups := usedGroups(t)
		rings := ringOf(seen, t.PID)
		if rings == nil {
			problems = append(problems, fmt.Sprintf("rank %d: got no ring", t.Rank))
			continue
		}
		comms := slices.DeleteFunc(slices.Clone(rings.Comms), func(c ncclComm) bool { return len(c.Ops) == 0 })
		for i, g := range groups {
			if i >= len(comms) {
				break
			}
			n, wrong := compareRASGroup(s, t, g, comms[i].Hash)
			counted += n
			problems = append(problems, wrong...)
		}
	}
	return counted, problems
}

func compareRASGroup(s *ras.Status, t *ncclTruth, g ncclGroup, hash uint64) (counted int, problems []string) {
	at := slices.IndexFunc(s.Comms, func(c ras.Comm) bool { return c.Hash == hash })
	if at < 0 {
		return 0, []string{fmt.Sprintf("rank %d: got no communicator %#x, which is %s", t.Rank, hash, g.Name)}
	}
	c := &s.Comms[at]
	if c.Size != int(g.Size) {
		problems = append(problems, fmt.Sprintf("%s: got size %d; want %d", g.Name, c.Size, g.Size))
	}
	at = slices.IndexFunc(c.Ranks, func(r ras.Rank) bool { return r.Rank == int(g.Rank) })
	if at < 0 {
		return 0, append(problems, fmt.Sprintf("%s: got no answer of rank %d", g.Name, g.Rank))
	}
	for _, function := range rasFunctions {
		want := int64(0)
		for i := range t.Ops {
			if t.Ops[i].Group == g.Name && t.Ops[i].Function == function {
				want++
			}
		}
		got := int64(0)
		for _, n := range c.Ranks[at].Counts {
			if n.Func == function {
				got = n.N
			}
		}
		counted += int(got)
		if got != want {
			problems = append(problems, fmt.Sprintf("%s, rank %d: got %d %s; want %d", g.Name, g.Rank, got, function, want))
		}
	}
	return counted, problems
}

// behind returns the ranks that have launched fewer all-reduces than others of their
// communicator.
func behind(s *ras.Status) (ranks []int) {
	for i := range s.Comms {
		most := int64(0)
		counts := map[int]int64{}
		for _, r := range s.Comms[i].Ranks {
			for _, n := range r.Counts {
				if n.Func == "AllReduce" {
					counts[r.Rank] = n.N
					most = max(most, n.N)
				}
			}
		}
		for rank, n := range counts {
			if n < most {
				ranks = append(ranks, rank)
			}
		}
	}
	slices.Sort(ranks)
	return ranks
}

// rasJSON returns RAS's answer as it is, for a fixture.
func rasJSON(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, rasTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("keep RAS answer: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("keep RAS answer: %w", err)
		}
	}
	for _, command := range []string{"CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"} {
		if _, err := io.WriteString(conn, command+"\n"); err != nil {
			return nil, fmt.Errorf("keep RAS answer: %w", err)
		}
		if command == "VERBOSE STATUS" {
			break
		}
		if _, err := readLine(conn); err != nil {
			return nil, fmt.Errorf("keep RAS answer: %w", err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(conn, rasBytes))
	if err != nil {
		return nil, fmt.Errorf("keep RAS answer: %w", err)
	}
	return text, nil
}

// readLine reads to the end of a line, byte by byte, so that nothing behind it is taken.
func readLine(r io.Reader) (string, error) {
	var line strings.Builder
	b := []byte{0}
	for line.Len() < 1024 {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return line.String(), nil
		}
		line.WriteByte(b[0])
	}
	return "", fmt.Errorf("got a line of more than %d bytes", line.Len())
}
