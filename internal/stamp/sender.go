// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"errors"
	"fmt"
	"time"
)

// Defaults and limits of a sender.
const (
	DefaultPending  = 1024
	DefaultTimeout  = time.Second
	DefaultPatience = 4 * time.Second
	maxPending      = 1 << 16
)

// Why a reply is refused. ErrForged is another reason.
var (
	ErrMismatch  = errors.New("the reply does not repeat its request")
	ErrDuplicate = errors.New("the request was answered before")
	ErrLate      = errors.New("the request is not waited for any more")
	ErrEstimate  = errors.New("the error estimate has a multiplier of 0")
)

// SenderConfig is what a session-sender is made of.
type SenderConfig struct {
	Key     *Key // nil: unauthenticated
	SSID    uint16
	Path    uint8
	ClockID string // whose readings the raw stamps are
	// Mark is borne by every request, for a reflector that knows it; 0: none.
	Mark uint64
	// Pending is how many requests are remembered, rounded up to a power of two; 0:
	// DefaultPending.
	Pending int
	// Timeout is after how long a request counts as lost; 0: DefaultTimeout.
	Timeout time.Duration
	// Patience is how long an answered request waits for the stamps that later
	// packets bring, at least Timeout; 0: DefaultPatience. At one probe a second the
	// reply's stamp comes a second later.
	Patience time.Duration
}

// SenderCounters count packets unless they say otherwise.
type SenderCounters struct {
	Requests, Replies int64
	// Refused:
	Short, Long int64
	Forged      int64 // the base packet's HMAC does not hold
	Mismatched  int64 // other session, or other than what was sent
	Duplicate   int64
	Late        int64
	Corrupt     int64 // without an error estimate
	// Faulty replies count, but not what they say: their TLVs are malformed, not
	// authentic, made for another packet, or gone.
	Faulty  int64
	Overrun int64 // requests pushed out by later ones while they were waited for
	Partial int64 // exchanges delivered without all stamps
}

// States of a request that is remembered.
const (
	slotFree = iota
	slotWaiting
	slotAnswered // but stamps are missing
	slotDone
	slotLost
)

type slot struct {
	ex      Exchange
	time    Timestamp // as it stands in the packet
	at      int64     // raw ns, when it was made
	state   uint8
	stamped bool // Sent came
	// instance is the reflector's, which counted the reply.
	instance uint32
}

// early is the stamp of a reply that a later one overtook.
type early struct {
	Follow
	instance uint32
}

// Sender is one session: it makes requests and matches replies.
type Sender struct {
	cfg  SenderConfig
	ring []slot
	mask uint32
	// replies finds a request by its reply's number.
	replies []uint32
	early   []early
	next    uint32 // number of the next request
	settled uint32 // requests before it count as answered or lost
	held    uint32 // exchanges before it were delivered
	pair    uint32
	losses  losses
	loss    Loss // not fetched yet
	ready   []Exchange
	peer    string
	// instance is the reflector's, as the last reply told it.
	instance uint32
	foreign  bool // the last reply had no TLV of ours
	tlvs     TLVs
	c        SenderCounters
}

// NewSender returns a session that has sent nothing.
func NewSender(cfg SenderConfig) (*Sender, error) {
	if cfg.Pending == 0 {
		cfg.Pending = DefaultPending
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Patience == 0 {
		cfg.Patience = max(DefaultPatience, cfg.Timeout)
	}
	switch {
	case cfg.Pending < 1 || cfg.Pending > maxPending:
		return nil, fmt.Errorf("make sender: got %d pending requests; want 1 to %d", cfg.Pending, maxPending)
	case cfg.Timeout < 0 || cfg.Patience < cfg.Timeout || cfg.Patience > time.Hour:
		return nil, fmt.Errorf("make sender: got timeout %s, patience %s; want 0 < timeout <= patience <= 1h", cfg.Timeout, cfg.Patience)
	case len(cfg.ClockID) > MaxID:
		return nil, fmt.Errorf("make sender: got clock id of %d bytes; want at most %d", len(cfg.ClockID), MaxID)
	}
	n := 1
	for n < cfg.Pending {
		n *= 2
	}
	return &Sender{cfg: cfg, ring: make([]slot, n), mask: uint32(n - 1), replies: make([]uint32, n), early: make([]early, n)}, nil
}

// Counters returns what was counted so far.
func (s *Sender) Counters() SenderCounters { return s.c }

// Next appends the next request to dst. now stands for the moment at which it
// leaves until Sent tells that better.
func (s *Sender) Next(now Stamp, part Part, dst []byte) (packet []byte, seq uint32) {
	seq = s.next
	if seq-s.settled > s.mask {
		s.overrun()
	}
	e := &s.ring[seq&s.mask]
	if e.state == slotAnswered {
		s.deliver(e)
	}
	if part == First {
		s.pair++
	}
	*e = slot{state: slotWaiting, at: now.Raw, time: PTP(now.Unix)}
	e.ex = Exchange{Seq: seq, Part: part, Path: s.cfg.Path, T1: now}
	if part != Single {
		e.ex.Pair = s.pair
	}
	r := Request{Seq: seq, Time: e.time, Error: Estimate(now.Width), SSID: s.cfg.SSID, TLVs: s.extensions(&e.ex)}
	s.next++
	s.c.Requests++
	return r.Append(dst, s.cfg.Key), seq
}

func (s *Sender) extensions(ex *Exchange) TLVs {
	c := Clock{Flags: uint8(ex.Part), Path: ex.Path, Pair: ex.Pair, ID: s.cfg.ClockID, Received: int64(s.cfg.Mark), Instance: s.instance}
	t, err := s.tlvs[:0].AppendClock(&c)
	if err != nil {
		panic(err) // the id's length was checked
	}
	if s.foreign {
		t = t.AppendFollowUp()
	}
	s.tlvs = t
	return t
}

// overrun gives up the oldest request, so that its place is free.
func (s *Sender) overrun() {
	e := &s.ring[s.settled&s.mask]
	if e.state == slotWaiting {
		s.c.Overrun++
		s.lose(e)
	} else {
		s.settle(e)
	}
}

// Sent tells when a request left.
func (s *Sender) Sent(seq uint32, tx Stamp) {
	e := s.find(seq)
	if e == nil || e.stamped || !tx.OK() {
		return
	}
	e.stamped = true
	e.ex.T1 = tx
	if e.state == slotAnswered && e.ex.T3.OK() {
		s.deliver(e)
	}
}

// find returns a request that is still remembered and not done with.
func (s *Sender) find(seq uint32) *slot {
	if s.next-seq-1 > s.mask {
		return nil
	}
	e := &s.ring[seq&s.mask]
	if e.state != slotWaiting && e.state != slotAnswered {
		return nil
	}
	return e
}

// Received takes a reply and appends to done the exchanges that are complete now:
// mostly earlier ones, since a reply brings the stamp of those before it.
func (s *Sender) Received(reply []byte, rx Stamp, done []Exchange) ([]Exchange, error) {
	r, err := DecodeReply(reply, s.cfg.Key)
	if err != nil {
		s.count(reply, err)
		return s.flush(done), err
	}
	// RFC 4656, 4.1.2: such a packet is corrupt.
	if r.Error.Multiplier() == 0 {
		s.c.Corrupt++
		return s.flush(done), fmt.Errorf("receive reply %d: %w", r.SenderSeq, ErrEstimate)
	}
	e, err := s.match(&r)
	if err != nil {
		return s.flush(done), fmt.Errorf("receive reply %d: %w", r.SenderSeq, err)
	}
	s.c.Replies++
	e.state = slotAnswered
	x := &e.ex
	x.T4, x.TTL, x.ReflectorSeq = rx, r.SenderTTL, r.Seq
	s.times(&r, x)
	s.replies[r.Seq&s.mask] = x.Seq
	if r.Fault != 0 {
		s.c.Faulty++
		x.Faulty = true
	} else {
		s.learn(&r, e)
	}
	return s.flush(done), nil
}

// times takes what the base packet says, unless its error is beyond telling.
func (s *Sender) times(r *Reply, x *Exchange) {
	width, ok := r.Error.width()
	if !ok {
		return
	}
	near := x.T1.Unix
	x.T2 = Stamp{Unix: r.Received.Unix(near, r.Error.PTP()), Width: width}
	x.T3 = Stamp{Unix: r.Time.Unix(near, r.Error.PTP()), Width: width}
}

func (s *Sender) count(reply []byte, err error) {
	switch {
	case errors.Is(err, ErrForged):
		s.c.Forged++
	case len(reply) > MaxLen:
		s.c.Long++
	default:
		s.c.Short++
	}
}

// match finds the request of a reply. A reflector that knows no SSID returns 0.
func (s *Sender) match(r *Reply) (*slot, error) {
	if s.next-r.SenderSeq-1 > s.mask {
		if int32(s.next-r.SenderSeq) <= 0 {
			s.c.Mismatched++
			return nil, ErrMismatch
		}
		s.c.Late++
		return nil, ErrLate
	}
	e := &s.ring[r.SenderSeq&s.mask]
	switch {
	case e.time != r.SenderTime || (r.SSID != s.cfg.SSID && r.SSID != 0):
		s.c.Mismatched++
		return nil, ErrMismatch
	case e.state == slotLost:
		s.c.Late++
		return nil, ErrLate
	case e.state != slotWaiting:
		s.c.Duplicate++
		return nil, ErrDuplicate
	}
	return e, nil
}

// learn takes what the reply's TLVs tell.
func (s *Sender) learn(r *Reply, e *slot) {
	if v, ok := r.TLVs.Find(TypeFollowUp); ok {
		s.followUp(v.Value, r.Error.PTP())
	}
	v, ok := r.TLVs.Find(TypeClock)
	s.foreign = !ok
	if !ok {
		// Who signs and had the TLV before lost it under way: the base is signed apart.
		if s.cfg.Key != nil && s.peer != "" {
			s.c.Faulty++
			e.ex.Faulty = true
		}
		return
	}
	c, id, err := decodeClock(v.Value)
	if err != nil {
		s.c.Faulty++
		e.ex.Faulty = true
		return
	}
	if string(id) != s.peer {
		s.peer = string(id)
		clear(s.early)
	}
	e.instance, s.instance = c.Instance, c.Instance
	e.ex.PeerClock, e.ex.Stateful = s.peer, c.Flags&ClockStateful != 0
	e.ex.T2.Raw, e.ex.T2.Kind, e.ex.T2.Width = c.Received, c.ReceivedKind, c.ReceivedWidth
	for _, f := range c.Follows[:c.Count] {
		// When a packet itself leaves is not known while it is made.
		if int32(r.Seq-f.Seq) > 0 {
			s.follow(f, c.Instance)
		}
	}
	if f := s.early[r.Seq&s.mask]; f.Seq == r.Seq {
		s.follow(f.Follow, f.instance)
	}
}

// follow takes the stamp of a reply of an instance of the reflector: one that began
// anew counts from 0 again.
func (s *Sender) follow(f Follow, instance uint32) {
	e := s.answered(f.Seq)
	switch {
	case f.Kind == KindNone:
	case e == nil || e.instance != instance:
		s.early[f.Seq&s.mask] = early{f, instance}
	case e.ex.PeerClock == s.peer:
		e.ex.T3.Raw, e.ex.T3.Kind, e.ex.T3.Width = f.Sent, f.Kind, f.Width
		if e.stamped {
			s.deliver(e)
		}
	}
}

// followUp takes RFC 8972's follow-up, which is no raw stamp. A reply leaves after
// it was made; what says otherwise is of another reply.
func (s *Sender) followUp(value []byte, ptp bool) {
	f, err := DecodeFollowUp(value)
	e := s.answered(f.Seq)
	if err != nil || f.Time == 0 || e == nil || e.ex.T3.Unix == 0 {
		return
	}
	e.ex.T3.Unix = max(e.ex.T3.Unix, f.Time.Unix(e.ex.T3.Unix, ptp))
}

// answered finds a request that waits for its reply's stamp, by that reply's
// number.
func (s *Sender) answered(reply uint32) *slot {
	e := &s.ring[s.replies[reply&s.mask]&s.mask]
	if e.state != slotAnswered || e.ex.ReflectorSeq != reply || e.ex.T3.OK() {
		return nil
	}
	return e
}

// deliver hands an exchange out.
func (s *Sender) deliver(e *slot) {
	e.state = slotDone
	if !e.ex.T3.OK() || !e.stamped {
		s.c.Partial++
	}
	// No more than the ring holds: what is answered is so by Received, which empties
	// ready.
	s.ready = append(s.ready, e.ex)
}

func (s *Sender) flush(done []Exchange) []Exchange {
	done = append(done, s.ready...)
	s.ready = s.ready[:0]
	return done
}

// Expire appends the exchanges that waited long enough for the stamps they lack,
// and returns what was lost since the last call. Directions are told once a later
// request is answered, so a loss may be counted up to four timeouts after it.
func (s *Sender) Expire(now int64, done []Exchange) ([]Exchange, Loss) {
	for s.settled != s.next {
		e := &s.ring[s.settled&s.mask]
		if e.state == slotWaiting {
			if now-e.at < int64(s.cfg.Timeout) {
				break
			}
			s.lose(e)
			continue
		}
		s.settle(e)
	}
	if s.losses.run > 0 && now-s.losses.since > 4*int64(s.cfg.Timeout) {
		s.losses.giveUp(&s.loss)
	}
	s.hold(now)
	loss := s.loss
	s.loss = Loss{}
	return s.flush(done), loss
}

// lose settles a request that nothing came back for.
func (s *Sender) lose(e *slot) {
	e.state = slotLost
	s.losses.lost(e.at)
	s.settled++
}

// settle settles a request that was answered.
func (s *Sender) settle(e *slot) {
	s.losses.answered(e.ex.ReflectorSeq, e.ex.Stateful, &s.loss)
	s.settled++
}

// hold delivers what waited longer than the patience.
func (s *Sender) hold(now int64) {
	if s.next-s.held > s.mask+1 {
		s.held = s.next - s.mask - 1
	}
	for ; s.held != s.next; s.held++ {
		e := &s.ring[s.held&s.mask]
		switch {
		case e.state == slotWaiting:
			return
		case e.state != slotAnswered:
		case now-e.at < int64(s.cfg.Patience):
			return
		default:
			s.deliver(e)
		}
	}
}
