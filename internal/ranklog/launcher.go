// SPDX-License-Identifier: Apache-2.0

package ranklog

import "bytes"

// closings are texts by which launchers say that they end the ranks that are left: torchrun's, srun's and
// that of Slurm's daemon, mpirun's.
var closings = [][2]string{
	{"Sending process ", " closing signal "},
	{"srun: ", "Terminating StepId="},
	{"srun: ", "Job step aborted: "},
	{"srun: ", "Force Terminated "},
	{"srun: ", "forcing job termination"},
	{"slurmstepd: error: *** STEP ", " CANCELLED AT "},
	{string(markMPI), " exited on signal "},
}

// closes reports whether a launcher says that it ends the ranks that are left, since one ended. A limit of
// time, a person or a requeue ends ranks long after the time-outs.
func closes(s []byte) bool {
	if bytes.Contains(s, []byte(" DUE TO ")) {
		return false
	}
	for _, c := range closings {
		if _, rest, ok := bytes.Cut(s, []byte(c[0])); ok && bytes.Contains(rest, []byte(c[1])) {
			return true
		}
	}
	return false
}

// launcher takes a line of a launcher. What ends behind its first signal is a result of that; the task of
// srun that ended before it is why.
func (l *reader) launcher(s []byte, at place) {
	if e, first, ok := ofSrunExit(s, at); ok {
		switch {
		case !first:
			l.task(e)
		case !l.closed && len(l.firsts) < maxNoted:
			l.firsts = append(l.firsts, e)
		}
	}
	if e, ok := ofRankExit(s, at); ok && !l.order.given() {
		if old, known := l.set.exits[e.rank]; (!known || !old.own()) && len(l.set.exits) < maxRecords {
			l.set.exits[e.rank] = e
		}
	}
	if l.closed || !closes(s) {
		return
	}
	l.closed, l.order = true, order{got: true, at: at}
	for _, e := range l.firsts {
		if _, known := l.set.tasks[e.rank]; !known {
			l.set.tasks[e.rank] = e
		}
	}
	if l.set.closing.line == 0 {
		l.set.closing = at
	}
}
