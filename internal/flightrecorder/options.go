// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import "github.com/lockstep-otel/lockstep/internal/pickle"

// Options say how to read a dump.
type Options struct {
	// Stacks asks for the call stacks.
	Stacks bool
	Limits Limits
	// Cache is shared by the readings of one job's dumps; nil: nothing is kept.
	Cache *Cache
}

// Limits bound what one dump may cost. Zero limits mean the defaults.
type Limits struct {
	// Pickle are those of the reading itself; its Bytes, Text and Depth hold for JSON, too.
	Pickle pickle.Limits
	// Entries bounds the operations that are kept; more are counted.
	Entries int
	// Groups bounds the process groups, Members the ranks of one.
	Groups, Members int
	// Distinct bounds the distinct names, sizes and stacks.
	Distinct int
}

const (
	// 262,144 entries are 32 MiB; users are known to record 100,000.
	defaultEntries = 1 << 18
	// 65,536 groups: a rank of a large mixture-of-experts job has some tens.
	defaultGroups = 1 << 16
	// 1,048,576 members: ten times the largest jobs known.
	defaultMembers = 1 << 20
	// 65,536 names, sizes and stacks: a model has some thousands.
	defaultDistinct = 1 << 16
)

// DefaultOptions returns options without stacks.
func DefaultOptions() Options { return Options{}.withDefaults() }

func (o Options) withDefaults() Options {
	o.Limits.Pickle = o.Limits.Pickle.Or(pickle.DefaultLimits())
	for _, p := range []struct {
		to  *int
		def int
	}{
		{&o.Limits.Entries, defaultEntries},
		{&o.Limits.Groups, defaultGroups},
		{&o.Limits.Members, defaultMembers},
		{&o.Limits.Distinct, defaultDistinct},
	} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	return o
}
