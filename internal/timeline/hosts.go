package timeline

import "time"

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
	if id, ok := t.hosts[host]; ok {
		return id, true
	}
	a := t.aliases[host]
	if a == nil {
		return "", false
	}
	told, ok := a.host(t.opt.Now(), t.opt.Forget)
	if !ok {
		return "", false
	}
	id, ok := t.hosts[told]
	return id, ok
}

// Alias tells a further name of a host, such as host.name beside host.id.
func (t *Timeline) Alias(name, host string) {
	if name == "" || name == host || len(name) > maxName || len(host) > maxName {
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
