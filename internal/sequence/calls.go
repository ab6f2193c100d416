// SPDX-License-Identifier: Apache-2.0

package sequence

import "slices"

// numbers returns all numbers of an arrival.
func (a *Arrival) numbers() Ranges {
	all := slices.Concat([]Range(a.Loose), a.Void)
	for _, of := range a.Steps {
		all = append(all, of...)
	}
	return Of(all)
}

// Expect takes what a batch has that is about to be passed on. Arrive or Refuse follows. Until then its numbers are
// neither lost nor a gap: the analysis may use them at any moment.
func (l *Ledger) Expect(all []Arrival) {
	l.expects = true
	for i := range all {
		of := all[i].Source
		l.calls[of] = append(l.calls[of], all[i].numbers())
	}
}

// Refuse takes back what Expect got, since the analysis did not use it.
func (l *Ledger) Refuse(all []Arrival) {
	for i := range all {
		l.returned(&all[i])
	}
}

// returned ends one call that Expect began with these numbers. A batch that is sent twice may have two calls.
func (l *Ledger) returned(a *Arrival) {
	calls, numbers := l.calls[a.Source], a.numbers()
	at := slices.IndexFunc(calls, func(of Ranges) bool { return slices.Equal(of, numbers) })
	switch {
	case at < 0:
	case len(calls) == 1:
		delete(l.calls, a.Source)
	default:
		l.calls[a.Source] = slices.Delete(calls, at, at+1)
	}
}

// passing returns the numbers of a stream whose calls are under way.
func (l *Ledger) passing(source string) (all Ranges) {
	for _, of := range l.calls[source] {
		all = all.Union(of)
	}
	return all
}
