// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"slices"
)

// Limits of what is kept of one file to part jobs.
const (
	maxClaimed = 8 // operations of one rank
	maxLabeled = 8 // labels of one rank
	maxStated  = 8 // names of jobs
)

// claims are what one file has that is of one job alone.
type claims struct {
	of      map[int64][]*claim // by rank, at most maxLabeled of each
	job     []string           // Slurm's numbers
	waiting bool               // it has lines of the watchdog
}

// claim is what a rank waits in. For how many milliseconds it does tells its process from others.
type claim struct {
	label       string
	works       []claimed
	first, last int64 // lines
}

type claimed struct {
	seq, ran int64
	op       string
}

// claim notes an operation of a rank. Lines without a rank are of the one in the file's name, unless
// they name another one.
func (l *reader) claim(tag label, rank int64, said *said, at place) {
	c := &l.set.claims[l.file]
	if !said.noted {
		if known := c.find(rank, tag.text); known != nil {
			known.last = at.line
		}
		return
	}
	c.waiting = true
	f := &l.set.files[l.file]
	if rank < 0 && f.Certain && (said.groupRank < 0 || said.groupRank == f.Rank) {
		rank = f.Rank
	}
	if rank < 0 || !said.hasWork || said.ran <= 0 || l.set.claimed >= maxRecords {
		return
	}
	known := c.find(rank, tag.text)
	if known == nil {
		if len(c.of[rank]) >= maxLabeled {
			return
		}
		known = &claim{label: tag.text, first: at.line}
		if c.of == nil {
			c.of = map[int64][]*claim{}
		}
		c.of[rank] = append(c.of[rank], known)
		l.set.claimed++
	}
	known.last = at.line
	work := claimed{said.work.seq, said.ran, said.work.op}
	if len(known.works) < maxClaimed && !slices.Contains(known.works, work) {
		known.works = append(known.works, work)
	}
}

// find returns the claim of a label to a rank; nil: there is none.
func (c *claims) find(rank int64, label string) *claim {
	for _, one := range c.of[rank] {
		if one.label == label {
			return one
		}
	}
	return nil
}

// apart reports whether two claims to one rank are of different processes.
func (c *claim) apart(o *claim) bool {
	return !slices.ContainsFunc(c.works, func(w claimed) bool { return slices.Contains(o.works, w) })
}

// mixed reports whether two processes of one file claim one rank at the same time.
func (c *claims) mixed() bool {
	for _, list := range c.of {
		for i, one := range list {
			for _, other := range list[:i] {
				if one.apart(other) && one.first <= other.last && other.first <= one.last {
					return true
				}
			}
		}
	}
	return false
}

// state notes what a line says of the job: Slurm's number of it. Masters and sizes are of one attempt of an
// elastic job.
func (c *claims) state(s []byte) {
	if bytes.IndexByte(s, '=') >= 0 {
		addStated(&c.job, valueOf(s, "SLURM_JOB_ID="))
		addStated(&c.job, valueOf(s, "SLURM_JOBID="))
	}
	if _, rest, ok := bytes.Cut(s, []byte("error: *** ")); ok && bytes.Contains(rest, []byte(" CANCELLED AT ")) {
		for _, kind := range []string{"JOB ", "STEP "} {
			if id, ok := bytes.CutPrefix(rest, []byte(kind)); ok {
				addStated(&c.job, word(id, ". "))
			}
		}
	}
}

// valueOf returns the word behind a mark; empty: there is none.
func valueOf(s []byte, mark string) string {
	_, rest, ok := bytes.Cut(s, []byte(mark))
	if !ok {
		return ""
	}
	return word(bytes.TrimLeft(rest, `"'`), " \t\"',;]")
}

// word returns the text in front of the first of some characters.
func word(s []byte, ends string) string {
	s = s[:min(len(s), maxLabel)]
	if i := bytes.IndexAny(s, ends); i >= 0 {
		s = s[:i]
	}
	return string(s)
}

// addStated adds a value, unless it is a variable of a shell.
func addStated(to *[]string, value string) {
	if value != "" && value[0] != '$' && value[0] != '%' && len(*to) < maxStated && !slices.Contains(*to, value) {
		*to = append(*to, value)
	}
}

// disjoint reports whether two lists, neither of them empty, have nothing in common.
func disjoint(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(v string) bool { return slices.Contains(b, v) })
}

// contradicts reports whether the lines of two files name different jobs.
func (c *claims) contradicts(o *claims) bool {
	return disjoint(c.job, o.job)
}
