// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// Defaults and limits of a reflector.
const (
	DefaultSessions = 4096
	DefaultPerPeer  = 64   // sessions of one address: 16 ports, and three restarts
	DefaultRate     = 4000 // packets per second and peer
	maxSessions     = 1 << 20
	maxRate         = 1e7
	// minBurst is for how long a peer's credit adds up.
	minBurst = int64(100 * time.Millisecond)
	// idle is after how much silence a session is over: its number window and its
	// count are forgotten, and another may take its place.
	idle = int64(60 * time.Second)
	// young is for how long a session of who tells no instance goes on before it has its
	// place for itself, and stale after how much silence any may have to make room.
	young = second
	stale = int64(10 * time.Second)
	// newcomers is of how many packets that a peer may send one more is answered without
	// a session, where there is no place.
	newcomers = 4
)

// Why a request is refused. ErrForged is another reason.
var (
	ErrStranger  = errors.New("the address is not a peer's")
	ErrUnstamped = errors.New("it is not known when the packet arrived")
	ErrLoop      = errors.New("the packet is a reply, not a request")
	ErrSigned    = errors.New("the packet is signed, and there is no key")
	ErrRate      = errors.New("the peer sends more than its rate")
	ErrFull      = errors.New("as many sessions as allowed are in use")
	ErrReplayed  = errors.New("the sequence number was seen before or is too old")
	ErrFuture    = errors.New("the sequence number is further ahead than the rate allows")
)

// ReflectorConfig is what a reflector is made of.
type ReflectorConfig struct {
	Key *Key // nil: unauthenticated
	// Stateful: replies bear a count of their own per session, so that a sender can
	// tell the direction of a loss, and tell of the replies before them.
	Stateful    bool
	MaxSessions int    // and peers; 0: DefaultSessions
	PerPeer     int    // sessions of one address; 0: DefaultPerPeer
	Rate        int    // packets per second and peer address; 0: DefaultRate
	ClockID     string // whose readings the raw stamps are
	Mark        uint64 // that Marked tells of; 0: none
	// Peer says whether an address may ask; nil: all may. It is called from Handle.
	Peer func(netip.Addr) bool
}

// ReflectorCounters count packets unless they say otherwise.
type ReflectorCounters struct {
	Replies int64
	// Refused, without a reply:
	Stranger    int64 // of no peer's address
	Short, Long int64
	Forged      int64 // the base packet's HMAC does not hold
	Looped      int64 // a reply that came as a request
	Signed      int64 // signed, and there is no key
	Unstamped   int64 // without a receive stamp
	Limited     int64 // beyond the peer's rate
	Full        int64 // a session or peer beyond the limit
	Replayed    int64
	Future      int64
	// Answered, but their TLVs were not used:
	Malformed, Integrity int64 // Integrity: or made for another packet
	Unrecognized         int64 // TLVs
	// Stamps of replies:
	Stray  int64 // of no session that is known
	Untold int64 // pushed out before a reply could tell of them
}

type sessionKey struct {
	peer netip.AddrPort
	ssid uint16
}

type session struct {
	window   window
	at       int64 // raw ns, when window.top came
	begun    int64
	used     int64 // raw ns, when a request came last
	count    uint32
	instance uint32
	// proven: the sender told what only a reply could tell it, so these are no recorded
	// requests from another port.
	proven bool
	// passing: it is of one packet, and its instance a ticket.
	passing bool
	follows follows
	last    FollowUp
}

// limiter is a peer's credit: next is when it has none left unspent, passing when it has none
// for requests without a session, room when a session of it last gave way to another, and used when it
// was charged last.
type limiter struct{ next, passing, room, used int64 }

// Number names a reply: by its session, by the instance of that, and in it.
type Number struct {
	SSID          uint16
	Instance, Seq uint32
}

// Reflector answers requests.
type Reflector struct {
	cfg      ReflectorConfig
	layout   *layout
	cost     int64 // ns of credit per packet
	secret   [32]byte
	sessions *bounded.Map[sessionKey, *session]
	peers    *bounded.Map[netip.Addr, *limiter]
	held     map[netip.Addr][]sessionKey
	now      int64 // raw ns, of the last request
	number   Number
	marked   bool // the last request
	c        ReflectorCounters
}

// NewReflector returns a reflector without sessions.
func NewReflector(cfg ReflectorConfig) (*Reflector, error) {
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = DefaultSessions
	}
	if cfg.PerPeer == 0 {
		cfg.PerPeer = DefaultPerPeer
	}
	if cfg.Rate == 0 {
		cfg.Rate = DefaultRate
	}
	switch {
	case cfg.MaxSessions < 1 || cfg.MaxSessions > maxSessions:
		return nil, fmt.Errorf("make reflector: got %d sessions; want 1 to %d", cfg.MaxSessions, maxSessions)
	case cfg.PerPeer < 1:
		return nil, fmt.Errorf("make reflector: got %d sessions of an address; want at least 1", cfg.PerPeer)
	case cfg.Rate < 1 || cfg.Rate > maxRate:
		return nil, fmt.Errorf("make reflector: got a rate of %d packets/s; want 1 to %d", cfg.Rate, int(maxRate))
	case len(cfg.ClockID) > MaxID:
		return nil, fmt.Errorf("make reflector: got clock id of %d bytes; want at most %d", len(cfg.ClockID), MaxID)
	}
	r := &Reflector{cfg: cfg, layout: layoutOf(cfg.Key), cost: second / int64(cfg.Rate)}
	_, _ = rand.Read(r.secret[:]) // which never fails
	r.beginAnew()
	return r, nil
}

// beginAnew forgets all sessions and what peers have sent. What is known of them rests on
// readings of raw: once it has gone back, with the machine that it is of, they are ahead, and
// every request would be refused until raw reads again what it did.
func (r *Reflector) beginAnew() {
	r.sessions = bounded.NewMap(bounded.MapConfig[sessionKey, *session]{Order: bounded.ByUse})
	r.peers = bounded.NewMap(bounded.MapConfig[netip.Addr, *limiter]{Order: bounded.ByUse})
	r.held = map[netip.Addr][]sessionKey{}
}

// forgetIdle drops the sessions that were idle for too long.
func (r *Reflector) forgetIdle(now int64) {
	r.sessions.DropOldest(func(k sessionKey, s *session) bool {
		gone := now-s.used >= idle
		if gone {
			r.release(k)
		}
		return gone
	})
}

// release takes a session that is dropped from those of its address.
func (r *Reflector) release(k sessionKey) {
	from := k.peer.Addr()
	held := r.held[from]
	i := slices.Index(held, k)
	held[i] = held[len(held)-1]
	if r.held[from] = held[:len(held)-1]; len(held) == 1 {
		delete(r.held, from)
	}
}

// Counters returns what was counted so far.
func (r *Reflector) Counters() ReflectorCounters { return r.c }

// Marked reports whether the request that Handle took last bears the mark.
func (r *Reflector) Marked() bool { return r.marked }

// Handle appends the reply to a request to dst: exactly as long as the request,
// or nothing and an error. rx is when the request arrived, ttl its TTL or hop
// limit on arrival, now is raw ns.
func (r *Reflector) Handle(req []byte, from netip.AddrPort, rx Stamp, ttl uint8, now int64, dst []byte) ([]byte, error) {
	r.marked = false
	if now < r.now {
		r.beginAnew()
	}
	r.now = now
	if err := r.admit(req, from.Addr(), rx); err != nil {
		return dst, fmt.Errorf("handle request: %w", err)
	}
	var in Request
	in.Seq = binary.BigEndian.Uint32(req)
	in.Time, in.Error, in.SSID = getTime(req, r.layout)
	s, err := r.session(sessionKey{from, in.SSID}, in.Seq, req, now)
	if err != nil {
		return dst, fmt.Errorf("handle request: %w", err)
	}
	since := max(0, now-rx.Raw)
	out := Reply{
		Seq: in.Seq, SSID: in.SSID, Error: Estimate(timeError(rx, since)), Received: PTP(rx.Unix),
		SenderSeq: in.Seq, SenderTime: in.Time, SenderError: in.Error, SenderTTL: ttl,
		Time: PTP(rx.Unix + since),
	}
	r.number = Number{SSID: in.SSID, Seq: in.Seq}
	if r.cfg.Stateful && !s.passing {
		out.Seq = s.count
		s.count++
		r.number.Instance, r.number.Seq = s.instance, out.Seq
	}
	start := len(dst)
	dst = append(dst, req...)
	b := dst[start:]
	clear(b[:r.layout.size])
	out.put(b, r.layout)
	if r.cfg.Key != nil {
		r.cfg.Key.sign(b[macAt:BaseLenAuth], b[:macAt], nil)
	}
	r.extend(b, req, s, rx)
	r.c.Replies++
	return dst, nil
}

// timeError covers both times of a reply: received, and the one that was carried
// over from it by the raw clock, from which realtime departs by 1,000 ppm at most.
func timeError(rx Stamp, since int64) uint32 {
	return uint32(min(int64(rx.Width)+since/1000+1, math.MaxUint32))
}

// Number returns that of the reply that Handle made last, as Sent wants it.
func (r *Reflector) Number() Number { return r.number }

// admit refuses packets before anything is kept of them.
func (r *Reflector) admit(req []byte, from netip.Addr, rx Stamp) error {
	if r.cfg.Peer != nil && !r.cfg.Peer(from) {
		r.c.Stranger++
		return ErrStranger
	}
	if err := admit(req, r.cfg.Key); err != nil {
		switch {
		case errors.Is(err, ErrForged):
			r.c.Forged++
		case len(req) > MaxLen:
			r.c.Long++
		default:
			r.c.Short++
		}
		return err
	}
	if !r.isRequest(req) {
		if r.cfg.Key == nil && looksSigned(req) {
			r.c.Signed++
			return ErrSigned
		}
		r.c.Looped++
		return ErrLoop
	}
	if !rx.OK() {
		r.c.Unstamped++
		return ErrUnstamped
	}
	return nil
}

// charge takes a packet from its sender's credit; what is passing has one of its own, so
// that it takes nothing from sessions.
func (r *Reflector) charge(from netip.Addr, now int64, passing bool) error {
	r.peers.DropOldest(func(_ netip.Addr, l *limiter) bool { return now-l.used >= idle })
	l, known := r.peers.Peek(from)
	if !known {
		if r.peers.Len() >= r.cfg.MaxSessions {
			r.c.Full++
			return ErrFull
		}
		l = &limiter{next: math.MinInt64, passing: math.MinInt64, room: now - second, used: now}
		r.peers.Set(from, l)
	}
	spent, cost := &l.next, r.cost
	taken := cost
	if passing {
		// Unevenly: who keeps time would come a moment before its turn, again and again.
		spent, cost = &l.passing, newcomers*cost
		taken = cost/2 + mathrand.Int64N(cost)
	}
	next := max(*spent, now-max(minBurst, 2*cost)) // two packets at least add up
	if next+cost > now {
		r.c.Limited++
		return ErrRate
	}
	*spent = next + taken
	l.used = max(l.used, now)
	r.peers.Touch(from)
	return nil
}

// isRequest: the bytes in which a reply has its fields beyond a request's are zero.
// Without this, a packet with the source address of another reflector would go to
// and fro for ever.
func (r *Reflector) isRequest(req []byte) bool {
	for _, b := range req[r.layout.received : r.layout.ttl+1] {
		if b != 0 {
			return false
		}
	}
	return true
}

// looksSigned: a signed request has zeros where one that is not has its timestamp and
// an error estimate, which is never 0.
func looksSigned(req []byte) bool {
	if len(req) < BaseLenAuth {
		return false
	}
	for _, b := range req[open.time:signed.time] {
		if b != 0 {
			return false
		}
	}
	return true
}

// session returns the session that a request belongs to, and nil where none is
// kept: a stateless reflector without a key has nothing to remember. What is
// refused costs no credit: neither what is unsigned nor what somebody recorded may
// use up the credit of who signs.
func (r *Reflector) session(k sessionKey, seq uint32, req []byte, now int64) (*session, error) {
	from := k.peer.Addr()
	if !r.cfg.Stateful && r.cfg.Key == nil {
		return nil, r.charge(from, now, false)
	}
	r.forgetIdle(now)
	s, known := r.sessions.Peek(k)
	if !known {
		return r.begin(k, seq, req, now)
	}
	if err := r.judge(s, seq, now); err != nil {
		return nil, err
	}
	if err := r.charge(from, now, false); err != nil {
		return nil, err
	}
	s.window.add(seq)
	if s.window.top == seq {
		s.at = now
	}
	s.used = max(s.used, now)
	r.sessions.Touch(k)
	return s, nil
}

// judge refuses numbers that cannot be of a new request.
func (r *Reflector) judge(s *session, seq uint32, now int64) error {
	// As many as the rate lets through in the time since, and a second more.
	ahead := (now-s.at)/r.cost + second/r.cost
	switch s.window.judge(seq, ahead) {
	case seqReplayed:
		r.c.Replayed++
		return ErrReplayed
	case seqFuture:
		r.c.Future++
		return ErrFuture
	}
	return nil
}

// extend turns the TLVs of a request, copied into b, into those of the reply.
func (r *Reflector) extend(b, req []byte, s *session, rx Stamp) {
	tlvs := b[r.layout.size:]
	if len(tlvs) == 0 {
		return
	}
	a := divide(tlvs)
	a.check(r.cfg.Key, req, false)
	if a.fault == FlagIntegrity {
		r.c.Integrity++
		for at := 0; len(tlvs)-at >= tlvHeader; {
			n, _ := tlvLen(tlvs[at:])
			tlvs[at] = FlagIntegrity
			at += n
		}
	} else {
		r.answer(tlvs, s, rx, a.fault == 0)
	}
	if a.mac != nil && a.fault == 0 {
		bind(b)
		r.cfg.Key.sign(a.mac, b[:4], a.signed)
	}
}

// answer fills in the TLVs, up to a malformed one.
func (r *Reflector) answer(tlvs []byte, s *session, rx Stamp, use bool) {
	for at := 0; len(tlvs)-at >= tlvHeader; {
		v := tlvs[at:]
		n, ok := tlvLen(v)
		if !ok || !knownLength(v[1], n-tlvHeader) {
			r.c.Malformed++
			v[0] = FlagMalformed
			return
		}
		v[0] = 0
		value := v[tlvHeader:n]
		switch kind := v[1]; {
		case kind == TypePadding || kind == TypeHMAC:
		case kind == TypeFollowUp:
			r.followUp(value, s, use)
		case kind == TypeClock && ours(value):
			if use {
				r.clock((*[clockLen]byte)(value), s, rx)
			}
		default:
			r.c.Unrecognized++
			v[0] = FlagUnrecognized
		}
		at += n
	}
}

// followUp tells when the reply before left; zeros where that is unknown.
func (r *Reflector) followUp(value []byte, s *session, use bool) {
	clear(value)
	if use && s != nil && r.cfg.Stateful {
		s.last.put(value)
	}
}

// clock answers the request's Clock TLV with ours, for the same pair and path.
func (r *Reflector) clock(value *[clockLen]byte, s *session, rx Stamp) {
	mark := binary.BigEndian.Uint64(value[clockReceived:])
	r.marked = r.marked || mark != 0 && mark == r.cfg.Mark
	c := Clock{
		Flags: value[5] & (ClockFirst | ClockSecond), Path: value[6], Pair: binary.BigEndian.Uint32(value[8:]),
		ID: r.cfg.ClockID, Received: rx.Raw, ReceivedKind: rx.Kind, ReceivedWidth: rx.Width,
	}
	if r.cfg.Stateful {
		s.proven = s.proven || binary.BigEndian.Uint32(value[clockInstance:]) == s.instance
		c.Instance = s.instance
	}
	if r.cfg.Stateful && !s.passing {
		c.Flags |= ClockStateful
		s.follows.fill(&c)
	}
	c.put(value)
}

// Sent tells when a reply left: peer is whom it went to. Later replies of the session
// say so.
func (r *Reflector) Sent(peer netip.AddrPort, n Number, tx Stamp) {
	if !r.cfg.Stateful || !tx.OK() {
		return
	}
	s, known := r.sessions.Peek(sessionKey{peer, n.SSID})
	if !known || s.instance != n.Instance {
		r.c.Stray++
		return
	}
	if !s.follows.add(n.Seq, tx) {
		r.c.Untold++
	}
	s.last = FollowUp{Seq: n.Seq, Time: PTP(tx.Unix), Mode: methodSoftware}
	if tx.Kind == KindHardware {
		s.last.Mode = methodHardware
	}
}
