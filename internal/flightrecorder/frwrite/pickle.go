// SPDX-License-Identifier: Apache-2.0

package frwrite

import "strconv"

// Pickle writes the dump as the file that PyTorch writes. Its keys come in PyTorch's order.
func Pickle(d *Dump) []byte {
	k := d.keys()
	p := newPickler(1024 + 160*len(d.Entries))
	p.dict()
	p.str("version")
	p.str(d.version())
	p.str("pg_config")
	p.groups(d.Groups)
	if k.lib != "" {
		p.str(k.lib)
		p.str(d.LibVersion)
	}
	if k.status {
		p.str("pg_status")
		p.status(d.Status)
	}
	p.str("entries")
	p.list()
	for i := range d.Entries {
		p.entry(&d.Entries[i], k, d.Stacks)
	}
	p.op(opAppends)
	if len(d.CommState) > 0 {
		p.str("nccl_comm_state")
		p.commState(d.CommState)
	}
	p.op(opSetItems)
	// The pickler memoizes what is held elsewhere, too: the dict itself by its caller.
	p.put()
	p.op(opStop)
	return p.buf
}

func (p *pickler) groups(groups []Group) {
	p.dict()
	for _, g := range groups {
		p.str(g.Name)
		p.dict()
		p.str("name")
		p.str(g.Name)
		p.str("desc")
		p.str(g.Desc)
		p.str("ranks")
		p.str(ranksText(g.Ranks))
		p.op(opSetItems)
	}
	p.op(opSetItems)
}

func (p *pickler) status(status []Status) {
	p.dict()
	for _, s := range status {
		p.str(strconv.FormatInt(s.PGID, 10))
		p.dict()
		p.str("last_enqueued_collective")
		p.integer(s.Enqueued)
		p.str("last_started_collective")
		p.integer(s.Started)
		p.str("last_completed_collective")
		p.integer(s.Completed)
		p.op(opSetItems)
	}
	p.op(opSetItems)
}

func (p *pickler) commState(comms []CommState) {
	p.dict()
	for _, c := range comms {
		p.str(c.Comm)
		p.dict()
		for _, v := range c.Values {
			p.str(v[0])
			p.str(v[1])
		}
		p.op(opSetItems)
	}
	p.op(opSetItems)
}

func (p *pickler) entry(e *Entry, k keys, stacks bool) {
	p.dict()
	if stacks {
		p.str("frames")
		p.stack(e.Frames)
	}
	p.str("record_id")
	p.integer(e.RecordID)
	p.str("pg_id")
	p.integer(e.PGID)
	p.str("process_group")
	p.str(e.Group)
	p.str(e.Desc)
	p.op(opTuple2)
	if k.thread {
		p.str("thread_name")
		p.str(e.ThreadName)
		p.str("thread_id")
		p.str(e.ThreadID)
	}
	p.str("collective_seq_id")
	p.integer(e.CollectiveSeq)
	p.str("p2p_seq_id")
	p.integer(e.P2PSeq)
	p.str("op_id")
	p.integer(e.OpID)
	p.str("profiling_name")
	p.str(e.Name)
	p.str("time_created_ns")
	p.integer(e.Created)
	if e.Duration != nil {
		p.str("duration_ms")
		p.float(*e.Duration)
	}
	p.str("input_sizes")
	p.sizes(e.In)
	if k.types {
		p.str("input_dtypes")
		p.strs(e.InTypes)
	}
	p.str("output_sizes")
	p.sizes(e.Out)
	if k.types {
		p.str("output_dtypes")
		p.strs(e.OutTypes)
	}
	p.str("state")
	p.str(e.State)
	p.str("time_discovered_started_ns")
	p.stamp(e.Started)
	p.str("time_discovered_completed_ns")
	p.stamp(e.Completed)
	p.str("retired")
	p.boolean(e.Retired)
	if k.types {
		p.str("timeout_ms")
		p.integer(e.TimeoutMS)
	}
	p.str("is_p2p")
	p.boolean(e.P2P)
	p.op(opSetItems)
}
