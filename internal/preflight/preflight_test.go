// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func at64(n int64) model.Optional[int64] { return model.Some(n) }

// domain is one that holds an epoch, of rank id.
func domain(id string, e int64) ckpt.Domain {
	return ckpt.Domain{Domain: model.Domain{Kind: model.DomainModel, ID: id}, State: model.DomainCommitted, Epoch: at64(e), Own: true}
}

func tracker(s model.DomainState, e int64) ckpt.Domain {
	d := ckpt.Domain{Domain: model.Domain{Kind: model.DomainTracker, ID: "latest"}, State: s}
	if s == model.DomainCommitted {
		d.Epoch = at64(e)
	}
	return d
}

func save(e int64, path string, ds ...ckpt.Domain) ckpt.Save {
	return ckpt.Save{Format: ckpt.FormatDeepSpeed, Path: path, Epoch: at64(e), Domains: ds}
}

func resume(e int64, path string) ckpt.Resume {
	return ckpt.Resume{Path: path, Epoch: at64(e), By: "latest"}
}

func place(name string, root ckpt.Root) Place { return Place{name, &root} }

var none model.Optional[int64]

func TestWhatAResumeWouldTakeIsJudged(t *testing.T) {
	whole := save(100, "a", domain("0", 100), domain("1", 100))
	broken := save(200, "b", domain("0", 200), ckpt.Domain{Domain: model.Domain{Kind: model.DomainModel, ID: "1"}, State: model.DomainAbsent})
	root := ckpt.Root{Saves: []ckpt.Save{whole, broken}, Resumes: []ckpt.Resume{resume(200, "b")}}
	r := Judge([]Place{place("x", root)}, none)
	require.False(t, r.OK())
	require.Equal(t, epoch.Converging, r.Verdict)
	require.Equal(t, at64(200), r.Epoch)
	require.Equal(t, "1 of 2 domains do not confirm it, the first model 1, which is absent", r.Why)
	require.Equal(t, at64(100), r.Frontier)
	require.True(t, r.Lagging)
	require.Equal(t, []int64{200, 100}, []int64{r.Saves[0].Epoch.V, r.Saves[1].Epoch.V}, "newest first")

	r = Judge([]Place{place("x", root)}, at64(100))
	require.False(t, r.OK(), "a resume would take another")
	require.Equal(t, "epoch 100 is whole, but a resume would take 200 (by latest)", r.Why)

	root.Resumes = []ckpt.Resume{resume(100, "a")}
	r = Judge([]Place{place("x", root)}, none)
	require.True(t, r.OK())
	require.Empty(t, r.Why)
	require.False(t, r.Lagging)
	require.Equal(t, "there is no save of epoch 300", Judge([]Place{place("x", root)}, at64(300)).Why)
}

func TestNothingToResumeFrom(t *testing.T) {
	require.Equal(t, "there is no save to resume from", Judge([]Place{place("x", ckpt.Root{})}, none).Why)
	none1 := ckpt.Root{Resumes: []ckpt.Resume{{By: "latest"}}}
	r := Judge([]Place{place("x", none1)}, none)
	require.Equal(t, epoch.Unknown, r.Verdict)
	require.Equal(t, "a resume would find no save (by latest)", r.Why)
	two := ckpt.Root{Saves: []ckpt.Save{save(1, "a", domain("0", 1)), save(2, "b", domain("0", 2))}}
	require.Equal(t, "nothing says which of 2 saves a resume would take; name one with --epoch", Judge([]Place{place("x", two)}, none).Why)
}

func TestMixedSaves(t *testing.T) {
	r := Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{save(200, "a", domain("0", 200), domain("1", 100))}})}, at64(200))
	require.Equal(t, epoch.MixedEpoch, r.Verdict)
	require.Equal(t, "domains hold different epochs: 100 (1), 200 (1)", r.Why)
	r = Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{save(200, "a", domain("0", 100))}})}, at64(200))
	require.Equal(t, epoch.MixedEpoch, r.Verdict)
	require.Equal(t, "the save is called 200, and its domains hold 100 (1)", r.Why)
	require.False(t, r.Frontier.OK)
}

// TestSeveralPlaces: parts of one save on the disks of two nodes.
func TestSeveralPlaces(t *testing.T) {
	a := ckpt.Root{Saves: []ckpt.Save{save(100, "g1", domain("0", 100)), save(200, "g2", domain("0", 200))}, Resumes: []ckpt.Resume{resume(200, "g2")}}
	b := ckpt.Root{Saves: []ckpt.Save{save(100, "g1", domain("1", 100)), save(200, "g2", domain("1", 200))}, Resumes: []ckpt.Resume{resume(200, "g2")}}
	r := Judge([]Place{place("A", a), place("B", b)}, none)
	require.True(t, r.OK(), r.Why)
	require.Equal(t, 2, r.Judged.Judgement.Domains)

	b.Resumes = []ckpt.Resume{resume(100, "g1")}
	r = Judge([]Place{place("A", a), place("B", b)}, none)
	require.Equal(t, epoch.MixedEpoch, r.Verdict)
	require.Equal(t, "places would resume from different epochs: A from 200 by latest, B from 100 by latest", r.Why)

	b.Saves, b.Resumes = b.Saves[:1], nil
	r = Judge([]Place{place("A", a), place("B", b)}, none)
	require.False(t, r.OK())
	require.Equal(t, "only 1 of 2 places say what they would resume from", r.Why)
	r = Judge([]Place{place("A", a), place("B", b)}, at64(200))
	require.Equal(t, epoch.Converging, r.Verdict, "B has nothing of it")
	require.Equal(t, at64(100), r.Frontier)
}

func TestTheFrontierIsWhatPointersMayNotYetName(t *testing.T) {
	s := save(200, "b", domain("0", 200), tracker(model.DomainTentative, 0))
	r := Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, at64(200))
	require.False(t, r.OK())
	require.Equal(t, at64(200), r.Frontier)
}

func TestSavesWithoutAName(t *testing.T) {
	s := save(0, ".", ckpt.Domain{Domain: model.Domain{Kind: model.DomainModel, ID: "0"}, State: model.DomainCommitted})
	s.Epoch = none
	r := Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, none)
	require.True(t, r.OK(), "it is whole, and nobody asked for an epoch")
	require.False(t, r.Epoch.OK)
	require.False(t, r.Frontier.OK)
	require.False(t, Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, at64(0)).OK())

	s.Domains = append(s.Domains, domain("1", 7))
	r = Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, none)
	require.Equal(t, at64(7), r.Epoch, "its contents name it")
	require.False(t, r.OK(), "one domain is of nobody knows which epoch")
	s.Domains = []ckpt.Domain{domain("0", 7), domain("1", 8)}
	require.Equal(t, epoch.MixedEpoch, Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, none).Verdict)
}

func TestWhatIsNotProvenIsUnknown(t *testing.T) {
	s := save(100, "a", domain("0", 100))
	s.WorldUnknown = true
	r := Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, at64(100))
	require.Equal(t, epoch.Unknown, r.Verdict)
	require.Contains(t, r.Why, "--world-size")
	require.False(t, r.Frontier.OK)
	s.WorldUnknown, s.Unproven = false, "it is so"
	require.Equal(t, "it is so", Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{s}})}, at64(100)).Why)
}

func TestFoldersThatAreNotReadWhole(t *testing.T) {
	root := ckpt.Root{Saves: []ckpt.Save{save(100, "a", domain("0", 100))}, Counts: ckpt.Counts{EntriesLeftOut: 1}}
	r := Judge([]Place{place("x", root)}, at64(100))
	require.Equal(t, epoch.Unknown, r.Verdict)
	require.Equal(t, "a folder in x has more entries than are read", r.Why)
	require.False(t, r.Frontier.OK)
}

// TestTwoSavesOfOneEpoch: which of them a resume takes is not known.
func TestTwoSavesOfOneEpoch(t *testing.T) {
	torn := save(100, "last", ckpt.Domain{Domain: model.Domain{Kind: model.DomainModel, ID: "0"}, State: model.DomainTentative})
	r := Judge([]Place{place("x", ckpt.Root{Saves: []ckpt.Save{save(100, "a", domain("0", 100)), torn}})}, at64(100))
	require.Equal(t, epoch.Converging, r.Verdict)
}

func TestAPointerToNobodyKnowsWhat(t *testing.T) {
	root := ckpt.Root{Saves: []ckpt.Save{save(100, "a", domain("0", 100))}, Resumes: []ckpt.Resume{{Path: "last.ckpt", By: "last.ckpt"}}}
	r := Judge([]Place{place("x", root)}, at64(100))
	require.False(t, r.OK())
	require.Contains(t, r.Why, `"last.ckpt"`)
}
