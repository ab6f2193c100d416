// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config are the limits of a watch.
type Config struct {
	// Settle is for how long two nodes must have been heard to run different versions at once: each
	// at least every half of it, and by what came within a quarter of it. Then one was seen to run
	// its own between two times at which the other was.
	Settle time.Duration
	// Silent is after how long what was told of a node or a rank counts no more.
	Silent time.Duration
	// Compatible are, of each domain, sets of versions that may mix. A version is in the first set
	// that has it, or a pattern of it: one that ends in * stands for all that begin alike.
	Compatible map[model.VersionDomain][][]string

	MaxNodes int
	// MaxVersions bounds what is held of all nodes: one of each domain, and more where units differ.
	MaxVersions int
	MaxJobs     int
	// MaxRanks, MaxComms and MaxMembers are of all jobs; members are counted in each communicator. Where
	// one is reached, the first job that holds more of it than all that began after it makes room for others.
	MaxRanks, MaxComms, MaxMembers int
	// MaxBytes bounds what all jobs hold, and again what all nodes hold, by estimate.
	MaxBytes int
	// MaxEpisodes bounds the episodes that are open.
	MaxEpisodes int
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{
		Settle: 15 * time.Minute, // three heartbeats of the fleet_version receiver
		Silent: 15 * time.Minute,
		// 32,768 nodes are a fleet of 262,144 GPUs, with sixteen versions each.
		MaxNodes: 1 << 15, MaxVersions: 1 << 19,
		MaxJobs: 256, MaxRanks: 1 << 19, MaxComms: 1 << 17,
		MaxMembers:  1 << 23, // 262,144 ranks in 32 communicators each; 64 MiB
		MaxEpisodes: 1024,
		MaxBytes:    256 << 20, // all of the above with names of 50 bytes
	}
}

// maxSets and maxPatterns bound the configuration: more are a list of single machines.
const (
	maxSets     = 64
	maxPatterns = 256
)

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		ok   bool
		got  any
		want string
	}{
		{"settle", c.Settle >= time.Second, c.Settle, "at least 1s, with a unit"},
		{"silent", c.Silent >= c.Settle, c.Silent, "at least settle"},
		{"max_nodes", c.MaxNodes >= 1, c.MaxNodes, "at least 1"},
		{"max_versions", c.MaxVersions >= 1, c.MaxVersions, "at least 1"},
		{"max_jobs", c.MaxJobs >= 1, c.MaxJobs, "at least 1"},
		{"max_ranks", c.MaxRanks >= 1, c.MaxRanks, "at least 1"},
		{"max_communicators", c.MaxComms >= 1, c.MaxComms, "at least 1"},
		{"max_members", c.MaxMembers >= 1, c.MaxMembers, "at least 1"},
		{"max_bytes", c.MaxBytes >= 1, c.MaxBytes, "at least 1"},
		{"max_findings", c.MaxEpisodes >= 1, c.MaxEpisodes, "at least 1"},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %s", f.name, f.got, f.want))
		}
	}
	for domain, sets := range c.Compatible {
		errs = append(errs, checkSets(domain, sets)...)
	}
	return errors.Join(errs...)
}

func checkSets(domain model.VersionDomain, sets [][]string) (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("check compatible: %s: "+format, append([]any{domain}, args...)...))
	}
	if !slices.Contains(model.VersionDomains, domain) {
		bad("got no domain of versions; want one of %v", model.VersionDomains)
	}
	if len(sets) > maxSets {
		bad("got %d sets; want at most %d", len(sets), maxSets)
	}
	for i, set := range sets {
		if len(set) == 0 || len(set) > maxPatterns {
			bad("set %d: got %d versions; want 1 to %d", i, len(set), maxPatterns)
		}
		for _, p := range set {
			if p == "" || strings.Contains(strings.TrimSuffix(p, "*"), "*") {
				bad("set %d: got %q; want a version, or the beginning of one and *", i, p)
			}
		}
	}
	return errs
}

// class names those of a domain that may mix with a version: the set that has it, or itself.
func (c *Config) class(domain model.VersionDomain, version string) string {
	for i, set := range c.Compatible[domain] {
		for _, p := range set {
			if begin, ok := strings.CutSuffix(p, "*"); p == version || ok && strings.HasPrefix(version, begin) {
				return fmt.Sprintf("set %d", i)
			}
		}
	}
	return "version " + version
}

// Stats count what was taken, and what was not and why.
type Stats struct {
	Versions, States int64
	// Late counts versions that were told before what is known, of lives that are over, and by the
	// clock of their node longer ago than a quarter of Settle; Refused those that contradict
	// themselves, are of more units than are held, or of hardware without its model.
	Late, Refused int64
	// NodesRefused, VersionsRefused, RanksRefused and CommsRefused count what found no room, each
	// time that it is told; JobsEvicted jobs that left for others.
	NodesRefused, VersionsRefused, RanksRefused, CommsRefused, JobsEvicted int64
	// MembersUnknown counts communicators that a rank named without their members, or with others
	// than another rank.
	MembersUnknown int64
	// Restarted counts jobs of which a rank moved to another host or process.
	Restarted int64
	// Opened and Closed count findings; Withheld those for which there was no room, each once.
	Opened, Closed, Withheld int64

	// As of the last Tick: nodes, and those of which two observers tell; communicators, and those
	// of which nothing can be said because of members of which versions are not known.
	Nodes, Contested, Comms, Abstained int64
	// Bytes is what jobs and nodes hold now, by estimate.
	Bytes int64
}

// Overflowed is how often anything found no room.
func (s *Stats) Overflowed() int64 {
	return s.NodesRefused + s.VersionsRefused + s.RanksRefused + s.CommsRefused + s.JobsEvicted
}

// Held is a class of versions in a communicator.
type Held struct {
	Versions []string // at most maxVersions, sorted
	Nodes    int
	Ranks    int
	First    string // a host of it
}

// maxVersions bounds the versions of one class that are named.
const maxVersions = 4

// Judgement is what is known of one domain of a communicator.
type Judgement struct {
	Model string // of units; empty where the domain has none
	// Held has the class of most nodes first.
	Held []Held
	// Ranks are the communicator's, Known those of which the version is known.
	Ranks, Known int
	// Minority are the ranks of all classes but the first, at most as many as a finding lists;
	// MinorityHosts the first of their hosts.
	Minority      []int64
	MinorityCount int
	MinorityHosts []string
}
