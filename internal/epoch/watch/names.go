// SPDX-License-Identifier: Apache-2.0

package watch

import "maps"

// Name takes what a job is called. The watch keeps names of as many jobs as the engine holds.
func (w *Watch) Name(job, name string) {
	if _, known := w.names[job]; known || len(w.names) < w.cfg.Engine.Jobs {
		w.names[job] = name
	}
}

// NameOf returns what a job is called; empty where that is not known.
func (w *Watch) NameOf(job string) string { return w.names[job] }

// forgetNames makes room for names of jobs that are followed.
func (w *Watch) forgetNames() {
	if len(w.names) >= w.cfg.Engine.Jobs {
		maps.DeleteFunc(w.names, func(id, _ string) bool { return !w.Holds(id) })
	}
}
