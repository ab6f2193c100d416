// SPDX-License-Identifier: Apache-2.0

package probe

// rival is a neighbour that says that it is this host.
type rival struct {
	seen int64 // number of the last window in which it did
	same bool  // in our boot, too: its clock bears the name of ours
}

// addRival notes that a node says that a clock of this host is its own. All that it says
// is left out while it does.
func (o *owners) addRival(clock, node string, window int64) (anew bool) {
	r, known := o.rivals.Get(node)
	if !known {
		r = &rival{}
		o.rivals.Set(node, r)
	}
	_, boot, _ := parseClock(clock)
	r.seen, r.same = window, r.same || boot == o.own.Boot
	return !known
}

// endWindow closes a window, in which peers were heard or not.
func (o *owners) endWindow(heard bool) {
	if heard && !o.copied && o.namesakes() == 0 && o.alone < idleWindows {
		o.alone++
	}
}

// namesakes is how many neighbours bear the name of our clock. Machines made from one
// image have boots, and so clocks, of their own; and who was heard as another host is
// no copy of ours.
func (o *owners) namesakes() (n int) {
	for node, r := range o.rivals.All() {
		if r.same && !o.nodes.Has(node) {
			n++
		}
	}
	return n
}

// heardCopy notes that a copy of this node was heard: then that we bore our name alone is
// what it remembers, too.
func (o *owners) heardCopy(window int64) (anew bool) {
	anew = !o.copied
	o.copied, o.copySeen, o.alone = true, window, 0
	return anew
}

// disputed reports whether what we say of our clock may be taken for what another
// machine, resumed from the same snapshot, says of its own: then we say nothing. Our
// name is no secret, and who repeats it is a copy or a liar. A copy in which our node
// runs on knows what no liar does, our lineage, and is silent as we are. One in which a
// node was started anew cannot be told from a liar; but it hears us from its beginning
// on, and is silent. So who bore the name alone for idleWindows keeps it against one that
// comes later and knows nothing of us. Where we start beside one, either may be the copy.
// Two of them are taken for copies: it needs two liars, or one with two names on the list.
func (o *owners) disputed() bool {
	n := o.namesakes()
	return o.copied || n > 1 || n == 1 && o.alone < idleWindows
}

func (o *owners) forgetRivals(before int64) {
	o.copied = o.copied && o.copySeen >= before
	o.rivals.DropOldest(func(_ string, r *rival) bool { return r.seen < before })
}
