// SPDX-License-Identifier: Apache-2.0

package kineto

import "regexp"

// Options say how to read traces. Zero limits mean the defaults.
type Options struct {
	// JobID names the job; empty: $LOCKSTEP_JOB_ID, else the folder's name.
	JobID string
	// JobName is the human name; empty: the job's id.
	JobName string
	// RankPattern finds the rank in a file's name where the trace does not say
	// it: the first group that matched is the number.
	RankPattern *regexp.Regexp
	// StepPattern recognises step annotations of traces without ProfilerStep:
	// the first group that matched is the number.
	StepPattern *regexp.Regexp
	// WorldSize overrides the size that the trace states; 0 does not.
	WorldSize int64
	// HostOps asks for the host operators of GPU runs too.
	HostOps bool

	// MaxEvents bounds the events kept of one file.
	MaxEvents int
	// MaxEventBytes bounds one event; a longer one is skipped.
	MaxEventBytes int
	// MaxStrings bounds the distinct names of one file.
	MaxStrings int
	// MaxBytes bounds the content of one file, unpacked.
	MaxBytes int64

	// Progress is told how many bytes of the file were read so far, as they lie
	// on disk. It may be nil.
	Progress func(compressedBytesRead int64)
}

// EnvJobID names the environment variable that holds the job's id where the
// options do not.
const EnvJobID = "LOCKSTEP_JOB_ID"

const (
	// 8 million events are 512 MiB of kept events. The longest steps known have
	// some 100,000 kernels, so that this is tens of steps.
	defaultMaxEvents = 8 << 20
	// 1 MiB: the longest events seen are call stacks of some 10 KB.
	defaultMaxEventBytes = 1 << 20
	// 65,536 names: a big model has some thousand kernels and scopes.
	defaultMaxStrings = 1 << 16
	// 16 GiB: traces of single ranks have a few GB at most. A larger file has holes, or was
	// packed to keep its reader busy: 16 GiB of zeroes take 4 s.
	defaultMaxBytes = 16 << 30
	// minEventBytes keeps room for an ordinary event.
	minEventBytes = 4 << 10
)

var (
	defaultRankPattern = regexp.MustCompile(`(?i)(?:worker|rank)[_-]?(\d+)`)
	defaultStepPattern = regexp.MustCompile(`(?i)^(?:train_)?(?:step|iteration|iter)[ _#:/-]*(\d+)$`)
)

// DefaultOptions returns the options that suit an unmodified PyTorch.
func DefaultOptions() Options { return Options{}.withDefaults() }

func (o Options) withDefaults() Options {
	if o.RankPattern == nil {
		o.RankPattern = defaultRankPattern
	}
	if o.StepPattern == nil {
		o.StepPattern = defaultStepPattern
	}
	o.MaxEvents = positiveOr(o.MaxEvents, defaultMaxEvents)
	o.MaxEventBytes = max(positiveOr(o.MaxEventBytes, defaultMaxEventBytes), minEventBytes)
	o.MaxStrings = positiveOr(o.MaxStrings, defaultMaxStrings)
	o.MaxBytes = positiveOr(o.MaxBytes, defaultMaxBytes)
	return o
}

func positiveOr[T int | int64](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}
