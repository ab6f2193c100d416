// SPDX-License-Identifier: Apache-2.0

package suite

import "github.com/lockstep-otel/lockstep/internal/desync"

// Engine is the judge that is measured.
func Engine(in *Input) *desync.Report {
	a := desync.New(desync.NewDefaultConfig())
	a.SetJob(in.Job)
	for i := range in.States {
		a.Add(&in.States[i])
	}
	for _, b := range in.Absent {
		a.AddAbsence(b)
	}
	for _, w := range in.Witnesses {
		a.AddWitness(w)
	}
	a.SetDoubt(in.Doubt)
	return a.Conclude(0)
}
