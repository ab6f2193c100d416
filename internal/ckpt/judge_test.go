// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// holder is what holds saves, and says which.
type holder interface {
	fs.FS
	fmt.Stringer
	Truth(of *ckptsim.Save, others []*ckptsim.Save) ckptsim.Truth
	Published(of *ckptsim.Save, all []*ckptsim.Save) bool
	Finished(of *ckptsim.Save, all []*ckptsim.Save) bool
}

// onDisk is a real folder.
type onDisk struct{ *ckpt.Dir }

func (d onDisk) Truth(of *ckptsim.Save, others []*ckptsim.Save) ckptsim.Truth {
	return ckptsim.TruthIn(d, of, others)
}

func (d onDisk) Published(of *ckptsim.Save, all []*ckptsim.Save) bool {
	return ckptsim.PublishedIn(d, of, all)
}

func (d onDisk) Finished(of *ckptsim.Save, all []*ckptsim.Save) bool {
	return ckptsim.FinishedIn(d, of, all)
}

func (d onDisk) String() string {
	var out strings.Builder
	_ = fs.WalkDir(d, ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&out, "%s: %d bytes, %v\n", p, info.Size(), info.ModTime())
			}
		}
		return nil
	})
	return out.String()
}

// judged is what `lockstep preflight` makes of a folder.
type judged struct {
	root   *ckpt.Root
	result *preflight.Result
}

func judge(root *ckpt.Root) judged {
	return judged{root, preflight.Judge([]preflight.Place{{Name: "root", Root: root}}, model.Optional[int64]{})}
}

// converged reports whether the save of an epoch is called converged.
func (j judged) converged(e int64) bool {
	for i := range j.result.Saves {
		s := &j.result.Saves[i]
		if s.Epoch.OK && s.Epoch.V == e && s.Judgement.Verdict == epoch.Converged {
			return true
		}
	}
	return false
}

// unnamed holds against the truth what is said of saves that nothing names, and of epochs
// that were never saved.
func (j judged) unnamed(saves []*ckptsim.Save, state holder, wrong func(string, int64)) {
	for i := range j.result.Saves {
		s := &j.result.Saves[i]
		if s.Judgement.Verdict != epoch.Converged {
			continue
		}
		known := false
		for _, of := range saves {
			if s.Epoch.OK && s.Epoch.V == of.Epoch || !s.Epoch.OK && state.Truth(of, saves) == ckptsim.Whole {
				known = true
			}
		}
		if !known {
			wrong("called converged, and no save is whole", s.Epoch.V)
		}
	}
}

// String says what was read, for people who look for what went wrong.
func (j judged) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "root: %v\n", j.root.Problems)
	for i := range j.root.Saves {
		s := &j.root.Saves[i]
		fmt.Fprintf(&out, "%s %s, epoch %v, world unknown: %t\n", s.Format, s.Path, s.Epoch, s.WorldUnknown)
		for _, d := range s.Domains {
			fmt.Fprintf(&out, "  %s %s: %s %v (%s)\n", d.Kind, d.ID, d.State, d.Epoch, d.Witness)
		}
		for _, p := range s.Problems {
			fmt.Fprintf(&out, "  ! %v\n", p)
		}
	}
	return out.String()
}
