// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// fourRanks is a job of two nodes of two ranks: the world and two pairs across nodes. Rank 3
// has launched one all_reduce less in its pair.
func fourRanks() (worldComm, even, odd rastest.Comm) {
	at := func(rank int) rastest.Member {
		return rastest.Member{Host: fmt.Sprintf("10.0.0.%d", 1+rank/2), PID: 100 + rank}
	}
	member := func(local, rank int, reduces int64) rastest.Member {
		m := at(rank)
		m.Rank, m.AllReduce = local, reduces
		return m
	}
	worldComm = rastest.Comm{Hash: 0xab, Members: []rastest.Member{member(0, 0, 3), member(1, 1, 3), member(2, 2, 3), member(3, 3, 3)}}
	even = rastest.Comm{Hash: 0xcd, Members: []rastest.Member{member(0, 0, 42), member(1, 2, 42)}}
	odd = rastest.Comm{Hash: 0xef, Members: []rastest.Member{member(0, 1, 42), member(1, 3, 41)}}
	return worldComm, even, odd
}

func parse(t *testing.T, text string) *Status {
	t.Helper()
	s, err := Parse(strings.NewReader(text), 1<<20)
	require.NoError(t, err)
	return s
}

func job(t *testing.T, comms ...rastest.Comm) *Job {
	t.Helper()
	j, err := NewJob(parse(t, rastest.JSON(comms...)), "j", "llama", "n1:28028", 77)
	require.NoError(t, err)
	return j
}

func TestParse(t *testing.T) {
	w, even, odd := fourRanks()
	w.Members[2] = rastest.Member{Rank: 2, Host: "10.0.0.2", PID: 102, Missing: true, Dead: true}
	s := parse(t, rastest.JSON(w, even, odd))
	assert.Equal(t, "2.28.7", s.NCCLVersion)
	require.Len(t, s.Comms, 3)
	c := s.Comms[0]
	assert.Equal(t, uint64(0xab), c.Hash)
	assert.Equal(t, 4, c.Size)
	require.Len(t, c.Ranks, 3)
	assert.Equal(t, Process{Rank: 3, Host: "10.0.0.2", PID: 103}, c.Ranks[2].Process)
	assert.Contains(t, c.Ranks[2].Counts, Count{Func: "AllReduce", N: 3})
	assert.Equal(t, []MissingRank{{Process: Process{Rank: 2, Host: "10.0.0.2", PID: 102}, Unresponsive: true, ConsideredDead: true}}, c.Missing)
	assert.Empty(t, parse(t, rastest.JSON()).Comms)
}

func TestParseBadInput(t *testing.T) {
	comm := func(body string) string { return `{"communicators":[{` + body + `}]}` }
	for want, text := range map[string]string{
		"got no communicators": `{"nccl_version":"2.28.7"}`,
		"EOF":                  `{"communicators":[`,
		"want {":               `[]`,
		"want [":               `{"communicators":{}}`,
		"got no hash":          comm(`"size":2`),
		`got "cd"; want 0x and at most 16 hex digits`:          comm(`"hash":"cd","size":2`),
		`got "0x11112222333344445"`:                            comm(`"hash":"0x11112222333344445","size":2`),
		"got size 0; want 1 to 1048576":                        comm(`"hash":"0x1"`),
		"got size -3; want 1 to 1048576":                       comm(`"hash":"0x1","size":-3`),
		"got rank 2; want 0 to 1":                              comm(`"hash":"0x1","size":2,"ranks":[{"rank":2}]`),
		"got rank -1; want 0 to 1":                             comm(`"hash":"0x1","size":2,"missing_ranks":[{}]`),
		"got 5002 bytes; want at most 4096":                    comm(`"hash":"` + strings.Repeat("1", 5000) + `"`),
		"read rank: json: cannot unmarshal string":             comm(`"hash":"0x1","size":2,"ranks":[{"rank":"one"}]`),
		"got 65 functions; want at most 64":                    comm(`"hash":"0x1","size":2,"ranks":[{"rank":0,"collective_counts":{` + functions(65) + `}}]`),
		"exceeded max depth":                                   `{"communicators":[{"ranks":[` + strings.Repeat(`[`, 20000) + `]}]}`,
		"got more than 65536 communicators: too large":         `{"communicators":[` + strings.Repeat(`{"hash":"0x1","size":1},`, 65537) + `]}`,
		"invalid character 'N' looking for beginning of value": "NCCL version 2.27.3 compiled with CUDA 12.9\n",
	} {
		_, err := Parse(strings.NewReader(text), 4<<20)
		assert.ErrorContains(t, err, want)
	}
	_, err := Parse(strings.NewReader(`{"x":"`+strings.Repeat("y", 1<<20)), 1<<20)
	assert.ErrorContains(t, err, "got more than 1048576 bytes: too large")
}

func functions(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"F%d":1`, i)
	}
	return strings.Join(list, ",")
}

func TestJob(t *testing.T) {
	w, even, odd := fourRanks()
	j := job(t, odd, w, even)
	require.Len(t, j.States, 4)
	assert.Empty(t, j.Absent)
	assert.Empty(t, j.Facts)
	assert.Zero(t, j.Apart)
	s := j.States[3]
	assert.Equal(t, model.Rank{
		JobID: "j", JobName: "llama", Incarnation: model.Incarnation(model.World{CommHash: "0x00000000000000ab"}),
		Rank: 3, WorldSize: model.Some(int64(4)), PID: model.Some(int64(103)),
	}, s.Rank)
	assert.Equal(t, model.StateRAS, s.Source)
	assert.Equal(t, model.ProcessRunning, s.Process)
	assert.Equal(t, int64(77), s.Time)
	assert.Equal(t, "RAS at n1:28028: process 103 on 10.0.0.2, GPU 0", s.Name)
	assert.NotEmpty(t, s.Partial, "nothing that is open is listed")
	assert.Equal(t, []model.CommState{
		{
			Comm: model.Comm{ID: "0x00000000000000ef", Size: model.Some(int64(2)), Rank: model.Some(int64(1))}, Backend: "nccl", Members: []int64{1, 3},
			Scope: model.ScopeCommFunc, Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(40))}},
		},
		{
			Comm: model.Comm{ID: "0x00000000000000ab", Size: model.Some(int64(4)), Rank: model.Some(int64(3))}, Backend: "nccl", Members: []int64{0, 1, 2, 3},
			Scope: model.ScopeCommFunc, Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(2))}},
		},
	}, s.Comms)
	assert.Equal(t, []Launched{{0, "all_reduce", 45}, {1, "all_reduce", 45}, {2, "all_reduce", 45}, {3, "all_reduce", 44}}, j.Launched())
}

func TestMissingRanks(t *testing.T) {
	w, even, odd := fourRanks()
	w.Members[0].Missing = true // does not answer
	even.Members[0].Missing = true
	w.Members[3].Missing, w.Members[3].Dead = true, true
	odd.Members[1].Missing, odd.Members[1].Responsive = true, true // answers that it is no member
	w.Members[1].AsyncError, w.Members[2].Aborted, odd.Members[0].WithoutInit = 6, true, true
	j := job(t, w, even, odd)
	require.Len(t, j.States, 2)
	require.Len(t, j.Absent, 2)
	assert.Equal(t, Absent{
		Absence: model.Absence{Rank: 0, Reason: model.AbsentMissing, Detail: "process 100 on 10.0.0.1 does not answer NCCL's RAS (asked at n1:28028)", Time: 77},
		PID:     model.Some(int64(100)),
	}, j.Absent[0])
	assert.Equal(t, model.AbsentDead, j.Absent[1].Reason)
	assert.Equal(t, int64(3), j.Absent[1].Rank)
	assert.Equal(t, "NCCL's RAS considers process 103 on 10.0.0.2 dead (asked at n1:28028)", j.Absent[1].Detail)
	assert.Equal(t, []int64{0, 2}, j.States[1].Comms[1].Members, "those that are missing are members")
	require.Len(t, j.Facts, 2)
	assert.Equal(t, "nccl_async_error", j.Facts[0].Kind)
	assert.Equal(t, "remote process error on communicator 0x00000000000000ab of 4 ranks", j.Facts[0].What)
	assert.Equal(t, int64(1), j.Facts[0].Rank.Rank)
	assert.False(t, j.Facts[0].Network, "it may be the other process")
	assert.Equal(t, "nccl_aborted", j.Facts[1].Kind)
	of := j.Identity(&j.Absent[1])
	assert.Equal(t, j.States[0].Rank.JobID, of.JobID)
	assert.Equal(t, model.Some(int64(103)), of.PID)
}

// Jobs without a name stay apart.
func TestJobWithoutAnID(t *testing.T) {
	w, even, odd := fourRanks()
	j, err := NewJob(parse(t, rastest.JSON(w, even, odd)), "", "", "", 0)
	require.NoError(t, err)
	assert.Equal(t, j.Incarnation, j.States[0].Rank.JobID)
	assert.Equal(t, j.Incarnation, j.ID)
}

// Ranks of a communicator are never taken for those of the job.
func TestWorldIsFoundOrNot(t *testing.T) {
	w, even, odd := fourRanks()
	_, err := NewJob(parse(t, rastest.JSON(even, odd)), "", "", "", 0)
	require.ErrorContains(t, err, "outside of the largest communicator, of 2 ranks")

	odd.Members = append(odd.Members, rastest.Member{Rank: 2, PID: 200, Host: "x"})
	_, err = NewJob(parse(t, rastest.JSON(even, odd)), "", "", "", 0)
	require.ErrorContains(t, err, "got process 100 on 10.0.0.1 outside of the largest communicator, of 3 ranks")

	_, err = NewJob(parse(t, rastest.JSON()), "", "", "", 0)
	require.ErrorContains(t, err, "got no communicator")

	_, even, odd = fourRanks()
	again := rastest.Comm{Hash: 0x9, Members: append([]rastest.Member(nil), w.Members...)}
	j := job(t, w, again, even, odd)
	assert.Equal(t, model.Incarnation(model.World{CommHash: "0x0000000000000009"}), j.Incarnation, "of two of one order, the same each time")
	again.Members[0], again.Members[1] = again.Members[1], again.Members[0]
	again.Members[0].Rank, again.Members[1].Rank = 0, 1
	_, err = NewJob(parse(t, rastest.JSON(w, again, even, odd)), "", "", "", 0)
	require.ErrorContains(t, err, "got 0x00000000000000ab and 0x0000000000000009 of 4 ranks in different orders")
}

// A member whose process nobody knows is told of where the world communicator has it.
func TestProcessThatIsNotKnown(t *testing.T) {
	w, even, odd := fourRanks()
	w.Members[3].Missing, w.Members[3].NoSuchProc = true, true
	odd.Members[1].Missing, odd.Members[1].NoSuchProc = true, true
	j := job(t, w, even, odd)
	require.Len(t, j.Absent, 1)
	assert.Equal(t, int64(3), j.Absent[0].Rank)
	assert.Equal(t, "its process does not answer NCCL's RAS (asked at n1:28028)", j.Absent[0].Detail)
	assert.False(t, j.Absent[0].PID.OK)
	assert.Equal(t, 1, j.Apart)
	assert.Empty(t, j.States[1].Comms[1].Members)
}

// Where several ranks give one host, process and device, which of them is in another communicator is
// not known, and nobody's counts are taken for those of another.
func TestSeveralRanksOfOneProcess(t *testing.T) {
	w, even, odd := fourRanks()
	for _, m := range []*rastest.Member{&w.Members[1], &w.Members[3], &odd.Members[0], &odd.Members[1]} {
		m.Host, m.PID = "10.0.0.1", 1
	}
	j := job(t, w, even, odd)
	require.Len(t, j.States, 4)
	assert.Equal(t, 1, j.Apart)
	for rank, comms := range []int{2, 1, 2, 1} {
		assert.Len(t, j.States[rank].Comms, comms, "rank %d", rank)
	}
}

func TestTracker(t *testing.T) {
	tr := Tracker{Interval: 10 * time.Second, Heartbeat: time.Minute}
	at := time.Unix(1000, 0)
	answer := func(after time.Duration, change func(w, even, odd *rastest.Comm)) bool {
		at = at.Add(after)
		w, even, odd := fourRanks()
		odd.Members[1].AllReduce = 42
		change(&w, &even, &odd)
		return tr.Tell(job(t, w, even, odd), at)
	}
	launched := func(n int64) func(w, even, odd *rastest.Comm) {
		return func(w, _, _ *rastest.Comm) {
			for i := range w.Members {
				w.Members[i].AllReduce = n
			}
		}
	}
	assert.True(t, answer(0, launched(10)), "the first")
	assert.False(t, answer(10*time.Second, launched(20)), "all goes on")
	assert.False(t, answer(time.Second, launched(20)), "from another address")
	assert.True(t, answer(9*time.Second, func(w, e, o *rastest.Comm) { launched(30)(w, e, o); w.Members[1].AllReduce = 29 }), "uneven")
	assert.True(t, answer(10*time.Second, launched(30)), "a rank that was ahead stands")
	assert.False(t, answer(10*time.Second, launched(40)))
	assert.True(t, answer(10*time.Second, launched(40)), "all stand")
	assert.False(t, answer(10*time.Second, launched(50)))
	assert.True(t, answer(10*time.Second, func(w, e, o *rastest.Comm) { launched(60)(w, e, o); w.Members[1].AsyncError = 1 }), "an error")
	assert.False(t, answer(10*time.Second, func(w, e, o *rastest.Comm) { launched(70)(w, e, o); w.Members[1].AsyncError = 1 }), "the same error")
	assert.True(t, answer(10*time.Second, launched(80)), "the error is gone")
	for i := range int64(5) {
		assert.False(t, answer(10*time.Second, launched(90+i)))
	}
	assert.True(t, answer(10*time.Second, launched(100)), "heartbeat")
}

func TestTrackerIsBounded(t *testing.T) {
	tr := Tracker{Interval: time.Second, Heartbeat: time.Hour}
	w, even, odd := fourRanks()
	for i := range uint64(3 * maxJobs) {
		w.Hash = 1000 + i
		assert.True(t, tr.Tell(job(t, w, even, odd), time.Unix(int64(i), 0)))
	}
	assert.Equal(t, maxJobs, tr.jobs.Len())
	assert.Equal(t, int64(2*maxJobs), tr.Evicted())
}

func TestTracker_JobsThatAnsweredAtOneTime_FirstOfThemIsForgotten(t *testing.T) {
	tr := Tracker{Interval: 10 * time.Second, Heartbeat: time.Hour}
	w, even, odd := fourRanks()
	known := func(i uint64, at int64) bool {
		w.Hash = 1000 + i
		return !tr.Tell(job(t, w, even, odd), time.Unix(at, 0))
	}
	for i := range uint64(maxJobs + 1) {
		assert.False(t, known(i, 100))
	}
	assert.True(t, known(1, 101))
	assert.True(t, known(maxJobs/2, 101))
	assert.False(t, known(0, 101))
}

func client(s *rastest.Server) *Client {
	return &Client{Address: s.Address, Wait: 3 * time.Second, Timeout: 5 * time.Second, MaxBytes: 1 << 20}
}

func TestClient(t *testing.T) {
	w, even, odd := fourRanks()
	s := rastest.Start(t, rastest.JSON(w, even, odd))
	got, err := client(s).Status(t.Context())
	require.NoError(t, err)
	assert.Len(t, got.Comms, 3)
	assert.Equal(t, []string{"CLIENT PROTOCOL 2", "TIMEOUT 3", "SET FORMAT json", "VERBOSE STATUS"}, s.Commands())
}

func TestClientJSON_Answer_AsItCame(t *testing.T) {
	w, even, odd := fourRanks()
	want := rastest.JSON(w, even, odd)
	s := rastest.Start(t, want)
	got, err := client(s).JSON(t.Context())
	require.NoError(t, err)
	assert.JSONEq(t, want, string(got))
	assert.Equal(t, []string{"CLIENT PROTOCOL 2", "TIMEOUT 3", "SET FORMAT json", "VERBOSE STATUS"}, s.Commands())

	small := client(s)
	small.MaxBytes = int64(len(got)) - 1
	_, err = small.JSON(t.Context())
	require.ErrorContains(t, err, fmt.Sprintf("ask NCCL's RAS at %s: read status: got more than %d bytes", s.Address, small.MaxBytes))

	s.TextOnly()
	_, err = client(s).JSON(t.Context())
	require.ErrorIs(t, err, ErrTextOnly)
}

func TestClientFaults(t *testing.T) {
	s := rastest.Start(t, "{}")
	_, err := client(s).Status(t.Context())
	require.ErrorContains(t, err, "got no communicators")

	s.TextOnly()
	_, err = client(s).Status(t.Context())
	require.ErrorIs(t, err, ErrTextOnly)

	s.Silent()
	c := client(s)
	c.Timeout = 50 * time.Millisecond
	_, err = c.Status(t.Context())
	require.ErrorContains(t, err, "got no whole answer in 50ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client(s).Status(ctx)
	require.ErrorIs(t, err, context.Canceled)

	c.Address = "127.0.0.1:1"
	_, err = c.Status(t.Context())
	require.ErrorContains(t, err, "ask NCCL's RAS: dial tcp")

	big := rastest.Start(t, `{"communicators":[],"x":"`+strings.Repeat("y", 1<<20)+`"}`)
	_, err = client(big).Status(t.Context())
	require.ErrorContains(t, err, "got more than 1048576 bytes")
}

// The version is the first line of prose; what follows is waited for, and decides nothing.
func TestVersion(t *testing.T) {
	s := rastest.Start(t)
	s.Prose(rastest.Prose("2.24.3"))
	v, err := client(s).Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "2.24.3", v)
	assert.Equal(t, []string{"CLIENT PROTOCOL 2", "TIMEOUT 3", "STATUS"}, s.Commands(), "no JSON, which is of every rank")

	s.TextOnly()
	s.Prose("NCCL version 2.31.2+custom compiled with CUDA 13.0\n" + strings.Repeat("y", 2<<20))
	v, err = client(s).Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "2.31.2+custom", v)
}

// A job that does not answer to the end has told the version all the same; who asks waits for it, since
// a process would spin on a connection that was closed.
func TestVersionOfAJobThatHangs(t *testing.T) {
	s := rastest.Start(t)
	s.Prose(rastest.Prose("2.28.7"))
	s.Stall()
	c := client(s)
	c.Timeout = 300 * time.Millisecond
	began := time.Now()
	v, err := c.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "2.28.7", v)
	assert.GreaterOrEqual(t, time.Since(began), c.Timeout)

	c.Timeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	v, err = c.Version(ctx)
	require.NoError(t, err)
	assert.Equal(t, "2.28.7", v)
}

func TestVersionFaults(t *testing.T) {
	s := rastest.Start(t)
	for prose, want := range map[string]string{
		"": `read status: got "ERROR: Unknown command STATUS"; want NCCL version and a number`,
		"NCCL version unknown compiled with CUDA 12.9\n": `got "NCCL version unknown compiled with CUDA 12.9"; want NCCL version and a number`,
		"NCCL version 2.2":                 `read answer to "STATUS": EOF`,
		strings.Repeat("y", 2*maxLine):     `read answer to "STATUS": bufio: buffer full`,
		"HTTP/1.1 400 Bad Request\r\n\r\n": `got "HTTP/1.1 400 Bad Request"; want`,
	} {
		s.Prose(prose)
		v, err := client(s).Version(t.Context())
		require.ErrorContains(t, err, want)
		assert.Empty(t, v)
	}
	s.Silent()
	c := client(s)
	c.Timeout = 50 * time.Millisecond
	_, err := c.Version(t.Context())
	require.ErrorContains(t, err, "got no whole answer in 50ms")
	assert.False(t, Nobody(err))
	c.Address = "127.0.0.1:1"
	_, err = c.Version(t.Context())
	assert.True(t, Nobody(err))
}

// stream is a connection that says what it says, whatever it is told.
type stream struct{ io.Reader }

func (stream) Write(b []byte) (int, error) { return len(b), nil }

// Who never stops talking is hung up on.
func TestVersionIsBounded(t *testing.T) {
	endless := &zeros{left: 1 << 30}
	said := "SERVER PROTOCOL 2\nOK\n" + rastest.Prose("2.28.7")
	c := Client{Wait: time.Second, MaxBytes: 1 << 20}
	v, err := c.version(stream{io.MultiReader(strings.NewReader(said), endless)})
	require.NoError(t, err)
	assert.Equal(t, "2.28.7", v)
	assert.LessOrEqual(t, 1<<30-endless.left, 1<<20+maxLine)
}

// zeros are so many.
type zeros struct{ left int }

func (z *zeros) Read(b []byte) (int, error) {
	n := min(len(b), z.left)
	if n == 0 {
		return 0, io.EOF
	}
	z.left -= n
	clear(b[:n])
	return n, nil
}

// Whatever answers, the version is a word that was in it, or there is an error.
func FuzzVersion(f *testing.F) {
	f.Add([]byte("SERVER PROTOCOL 2\nOK\n" + rastest.Prose("2.28.7")))
	f.Add([]byte("SERVER PROTOCOL 2\r\nok\r\nNCCL version 2.1"))
	f.Fuzz(func(t *testing.T, said []byte) {
		c := Client{Wait: time.Second, MaxBytes: 1 << 10}
		v, err := c.version(stream{bytes.NewReader(said)})
		if err != nil {
			require.Empty(t, v)
			return
		}
		require.Regexp(t, `^\d+\.\d+\S*$`, v)
		require.Less(t, len(v), maxLine)
		require.Contains(t, string(said), v)
	})
}

func FuzzParse(f *testing.F) {
	w, even, odd := fourRanks()
	w.Members[1].Missing = true
	f.Add([]byte(rastest.JSON(w, even, odd)))
	f.Add([]byte(rastest.JSON()))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(strings.NewReader(string(data)), 1<<20)
		if err != nil {
			return
		}
		j, err := NewJob(s, "", "", "", 1)
		if err != nil {
			return
		}
		var tr Tracker
		tr.Tell(j, time.Unix(1, 0))
		for i := range j.States {
			require.GreaterOrEqual(t, j.States[i].Rank.Rank, int64(0))
			require.Less(t, j.States[i].Rank.Rank, int64(j.WorldSize))
		}
	})
}

// Counts that nothing was launched as often are refused, and no sum overflows.
func TestCountsOutOfRange(t *testing.T) {
	w, _, _ := fourRanks()
	w.Members[2].AllReduce = maxCount
	parse(t, rastest.JSON(w))
	w.Members[2].AllReduce = maxCount + 1
	_, err := Parse(strings.NewReader(rastest.JSON(w)), 1<<20)
	require.ErrorContains(t, err, "rank 2: got 35184372088833 launches of \"AllReduce\"; want at most 35184372088832")
	assert.Equal(t, int64(math.MaxInt64), add(math.MaxInt64-1, 2))
	assert.Equal(t, int64(5), add(2, 3))
}
