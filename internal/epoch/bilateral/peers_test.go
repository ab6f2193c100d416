// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// neighbours are addresses that speak to one board at a time of the test's.
type neighbours struct {
	*Board

	now time.Time
}

func (n *neighbours) says(peer, job, domain string, domains int, life string) error {
	_, err := n.Tell(&Tell{Job: job, Domain: domain, Domains: domains, Life: life, Sequence: n.now.UnixNano(), Peer: peer}, Until{}, n.now)
	return err
}

func newNeighbours(change func(*Config)) *neighbours {
	cfg := Config{MaxJobs: 8, MaxDomains: 40, PeerJobs: 4, PeerDomains: 10, Silent: time.Hour}
	if change != nil {
		change(&cfg)
	}
	return &neighbours{New(cfg), time.Unix(1_760_000_000, 0)}
}

func TestPeers_OneAddressFillsTheTable_OthersHaveRoom(t *testing.T) {
	for name, fill := range map[string]func(n *neighbours, i int) error{
		"with jobs":    func(n *neighbours, i int) error { return n.says("10.0.0.1", fmt.Sprint("junk ", i), "rank 0", 2, "a") },
		"with domains": func(n *neighbours, i int) error { return n.says("10.0.0.1", "junk", fmt.Sprint(i), 1000, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(nil)
			var err error
			for i := range 100 {
				err = fill(n, i)
			}
			require.ErrorIs(t, err, ErrFull)
			require.ErrorContains(t, err, " more of this address; want at most ")
			for i := range 4 {
				require.NoError(t, n.says("10.0.0.2", "job", fmt.Sprint(i), 4, "a"))
			}
			n.now = n.now.Add(idle)
			require.NoError(t, n.says("10.0.0.1", "another", "rank 0", 2, "a"), "its own silent job makes room")
		})
	}
}

func TestPeers_NothingHeld_NothingRemembered(t *testing.T) {
	n := newNeighbours(nil)
	require.NoError(t, n.says("10.0.0.1", "job", "rank 0", 2, "a"))
	require.NoError(t, n.says("10.0.0.2", "job", "rank 1", 2, "b"))
	require.Error(t, n.says("10.0.0.3", "job", "rank 2", 2, "c"))
	assert.Len(t, n.peers, 2, "of who was refused nothing is kept")
	n.now = n.now.Add(idle)
	require.NoError(t, n.says("10.0.0.3", "job", "rank 1", 2, "c"), "rank 1 moved")
	assert.NotContains(t, n.peers, "10.0.0.2")
	require.NoError(t, n.says("10.0.0.4", "job", "rank 3", 2, "d"), "instead of rank 0")
	assert.Equal(t, 0, n.peers["10.0.0.1"].domains)
	assert.Equal(t, 1, n.peers["10.0.0.1"].jobs.Len(), "the job is its")
	n.Forget(n.now.Add(time.Hour))
	assert.Empty(t, n.peers)
	assert.Zero(t, n.jobs.Len())
}

func TestLife_OfAnotherAddress_WaitsForSilence(t *testing.T) {
	n := newNeighbours(nil)
	require.NoError(t, n.says("10.0.0.1", "job", "rank 0", 2, "a"))
	n.now = n.now.Add(lively - time.Second)
	err := n.says("10.0.0.2", "job", "rank 0", 2, "b")
	require.ErrorIs(t, err, ErrHeld)
	assert.EqualError(t, err, `tell job "job": held: check life of "rank 0": got another process at another address; want the one that spoke 29s ago, or 30s of silence`)
	require.NoError(t, n.says("10.0.0.1", "job", "rank 0", 2, "b"), "begun anew at its own address")
	require.NoError(t, n.says("10.0.0.3", "job", "rank 0", 2, "b"), "the same process, which reached us another way")
	n.now = n.now.Add(lively)
	require.NoError(t, n.says("10.0.0.2", "job", "rank 0", 2, "c"), "the first is silent")
	require.ErrorIs(t, n.says("10.0.0.3", "job", "rank 0", 2, "b"), ErrConflict, "its life is over")
}

func TestJob_OthersTakeItsName_GoesOnWhileItSpeaks(t *testing.T) {
	n := newNeighbours(nil)
	tell := Tell{Job: "job", Domain: "rank 0", Domains: 2, Life: "a", Sequence: 1, Slots: []Slot{slot(7, "e", Tentative)}}
	_, err := n.Tell(&tell, Until{}, n.now)
	require.NoError(t, err)
	told(t, n)
	session := New(limits)
	other := Tell{Job: "job", Domain: "x", Domains: 1, Life: "b", Sequence: 1, Peer: "10.0.0.9"}
	a, err := session.Tell(&other, Until{}, n.now)
	require.NoError(t, err)
	other.Session = a.Session
	_, err = n.Tell(&other, Until{}, n.now)
	require.NoError(t, err)
	n.now = n.now.Add(lively - time.Second)
	tell.Sequence++
	_, err = n.Tell(&tell, Until{}, n.now)
	require.NoError(t, err)
	for range 3 {
		n.now = n.now.Add(lively)
		n.Forget(n.now)
		require.NotContains(t, told(t, n), model.DomainWithdrawn, "it spoke since")
	}
}

func told(t *testing.T, n *neighbours) (list []model.DomainState) {
	t.Helper()
	for _, c := range changes(n.Board, true) {
		if c.Domains == 2 {
			list = append(list, c.State)
		}
	}
	return list
}
