// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"

	"github.com/lockstep-otel/lockstep/internal/kineto"
)

// readers returns one reader per format.
func (o *analyzeOptions) readers() ([]reader, error) {
	rank, err := pattern("rank-pattern", o.rankPattern)
	if err != nil {
		return nil, err
	}
	step, err := pattern("step-pattern", o.stepPattern)
	if err != nil {
		return nil, err
	}
	options := kineto.DefaultOptions()
	options.JobID = o.job
	if rank != nil {
		options.RankPattern = rank
	}
	if step != nil {
		options.StepPattern = step
	}
	return []reader{
		newTorchReader(options),
		otlpReader{},
		parquetReader{},
		logReader{o.job, o.worldSize, rank},
		dumpReader{o.job, o.worldSize, o.hung, rank},
		rasReader{o.job, o.hung},
	}, nil
}

// pattern compiles the value of a flag; nil where it is empty.
func pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no pattern is a valid choice
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("compile --%s: %w", flag, patternError(text, err))
	}
	if re.NumSubexp() < 1 {
		return nil, fmt.Errorf("compile --%s: got %q without a group; want one around the number", flag, text)
	}
	return re, nil
}
