// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// alias is a further name of a host, such as host.name, with the hosts that it was
// told of last. Where two are told, such as localhost, it names nobody.
type alias struct{ told [2]telling }

type telling struct {
	host string
	at   time.Time
}

// toldAnew is how old a telling is before it is told again, so that what is told with
// every batch rarely takes the lock.
const toldAnew = time.Minute

// host is the one that the name was told of last, if there was no other since forget.
func (a *alias) host(now time.Time, forget time.Duration) (string, bool) {
	last, other := a.told[0], a.told[1]
	if other.at.After(last.at) {
		last, other = other, last
	}
	return last.host, last.host != "" && (other.host == "" || now.Sub(other.at) > forget)
}

func (a *alias) fresh(host string, now time.Time) bool {
	for _, t := range a.told {
		if t.host == host && now.Sub(t.at) < toldAnew {
			return true
		}
	}
	return false
}

// tell takes the place of the same host, or of the one that was told longer ago.
func (a *alias) tell(host string, now time.Time) {
	i := 0
	for k, t := range a.told {
		if t.host == host {
			i = k
			break
		}
		if t.at.Before(a.told[i].at) {
			i = k
		}
	}
	a.told[i] = telling{host, now}
}

// Resolve returns the current real-time clock of a host, by the id that stands in
// its clocks or by a name that Alias told of it alone.
func (t *Timeline) Resolve(host string) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.hosts[host] != "" {
		return t.ofHost(host)
	}
	a := t.aliases[host]
	if a == nil {
		return "", false
	}
	told, ok := a.host(t.opt.Now(), t.opt.Forget)
	if !ok {
		return "", false
	}
	return t.ofHost(told)
}

const (
	// silent is when a clock lives no more, for who else has its host's name: the longest
	// window of those that read clocks.
	silent = time.Minute
	// lateNews is for how long what was read before a host booted may arrive after what
	// was read later.
	lateNews = 10 * time.Second
	// anyBoot stands for the boot of spans that nobody has told it of.
	anyBoot = "?"
)

// ofHost is the current real-time clock of a host. Two that live at a time are those of
// two machines, and the name is neither's, until one was silent for long.
func (t *Timeline) ofHost(host string) (string, bool) {
	id, ok := t.hosts[host]
	one, other := t.tracks[id], t.tracks[t.rivals[host]]
	if other == nil || one == nil {
		return id, ok
	}
	now := t.opt.Now()
	switch {
	case now.Sub(other.heard) > silent:
		return id, ok
	case now.Sub(one.heard) > silent:
		return other.id, true
	}
	return "", false
}

// outlives reports whether a host's name is rather this clock's than another's: that of
// a boot that somebody named, and of two such the one that was heard later.
func (t *track) outlives(other *track) bool {
	switch {
	case other == nil:
		return true
	case (t.name.boot == anyBoot) != (other.name.boot == anyBoot):
		return other.name.boot == anyBoot
	}
	return t.heard.After(other.heard)
}

// current makes a clock of which there is news the one that its host's name resolves
// to, where the host has booted since; one of an older boot lives on beside it where it
// is heard of for long enough.
func (t *Timeline) current(tr *track) {
	host := tr.name.host
	if !tr.name.realtime || host == "" || t.hosts[host] == tr.id {
		return
	}
	now := t.tracks[t.hosts[host]]
	switch {
	case now == nil || now.name.boot == anyBoot && tr.name.boot != anyBoot || tr.heard.Sub(now.heard) > silent:
		t.hosts[host] = tr.id
		delete(t.rivals, host)
	case tr.name.boot == anyBoot && now.name.boot != anyBoot:
	case tr.foreign && now.heard.Sub(tr.heard) > lateNews: // models come in any order
	case tr.born > now.born:
		t.hosts[host] = tr.id
	case tr.heard.Sub(now.begun) > lateNews && t.rivals[host] != tr.id:
		t.rivals[host] = tr.id
		t.stats.HostsAmbiguous.Add(1)
	}
}

// forgetHost leaves a host to the other clock that has its name, if there is one.
func (t *Timeline) forgetHost(tr *track) {
	host := tr.name.host
	rival := t.rivals[host]
	switch tr.id {
	case rival:
		delete(t.rivals, host)
	case t.hosts[host]:
		delete(t.rivals, host)
		if delete(t.hosts, host); t.tracks[rival] != nil {
			t.hosts[host] = rival
		}
	}
}

// Alias tells a further name of a host, such as host.name beside host.id.
func (t *Timeline) Alias(name, host string) {
	if name == "" || name == host {
		return
	}
	if model.CheckClockName(name) != nil || host != "" && model.CheckClockName(host) != nil {
		t.stats.Refused.Add(1)
		return
	}
	now := t.opt.Now()
	t.mu.RLock()
	a := t.aliases[name]
	known := a != nil && a.fresh(host, now)
	t.mu.RUnlock()
	if known {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a = t.aliases[name]; a == nil {
		if len(t.aliases) >= t.opt.MaxClocks {
			t.stats.AliasesOverflowed.Add(1)
			return
		}
		a = &alias{}
		t.aliases[name] = a
	}
	_, alone := a.host(now, t.opt.Forget)
	a.tell(host, now)
	if _, still := a.host(now, t.opt.Forget); alone && !still {
		t.stats.AliasesAmbiguous.Add(1)
	}
}

// NameOf returns the name that Alias told of a host, if it is one alone, else the host as it
// is given: spans and findings of ranks know hosts by name.
func (t *Timeline) NameOf(host string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	found := ""
	for name, a := range t.aliases {
		if told, ok := a.host(t.opt.Now(), t.opt.Forget); !ok || told != host {
			continue
		}
		if found != "" {
			return host
		}
		found = name
	}
	if found == "" {
		return host
	}
	return found
}

// forgetAliases drops names that nobody tells any more, of hosts that are gone.
func (t *Timeline) forgetAliases(now time.Time) {
	for name, a := range t.aliases {
		if t.hosts[a.told[0].host] != "" || t.hosts[a.told[1].host] != "" {
			continue
		}
		if now.Sub(a.told[0].at) > t.opt.Forget && now.Sub(a.told[1].at) > t.opt.Forget {
			delete(t.aliases, name)
		}
	}
}
