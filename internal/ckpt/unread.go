// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ocdbt"
	"github.com/lockstep-otel/lockstep/internal/pickle"
	"github.com/lockstep-otel/lockstep/internal/safetensors"
	"github.com/lockstep-otel/lockstep/internal/torchsave"
)

// errLimit says that a file is larger than what is read of it.
var errLimit = errors.New("larger than what is read of one")

// unread says that a file could not be read as what it must be, which breaks a check: it is torn, but
// where it is larger than what is read of one, of a form that is not read at all, or its disk does not
// answer. Then nothing is known of it.
func (b *builder) unread(i int, check Check, name string, err error) {
	var disk *fs.PathError
	var errno syscall.Errno // the same, from where the path was left out
	check, severity := b.beyond(check, Partial, err)
	if errors.Is(err, torchsave.ErrLegacy) || errors.As(err, &disk) || errors.As(err, &errno) {
		check, severity = CheckInput, Unreadable
	}
	b.doubt(i, model.DomainTentative, Problem{check, severity, name, err.Error()})
}

// beyond is the check that an error breaks, and how much that weighs: a limit of ours is no fault of the
// save. Each is counted.
func (s *scan) beyond(check Check, severity Severity, err error) (Check, Severity) {
	limits := []error{errLimit, torchsave.ErrLimit, pickle.ErrLimit, safetensors.ErrLimit, ocdbt.ErrLimit}
	if !slices.ContainsFunc(limits, func(limit error) bool { return errors.Is(err, limit) }) {
		return check, severity
	}
	s.root.Counts.TooLarge++
	return CheckInput, Unreadable
}
