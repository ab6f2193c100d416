// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type extension struct {
	component.StartFunc
	component.ShutdownFunc
	Registry
}

type other struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestRelease_JoinedAnalyses_Forget(t *testing.T) {
	id := component.MustNewID("jobs")
	service, err := Find(host{id: &extension{}}, id)
	require.NoError(t, err)
	first, second := &analysis{}, &analysis{}
	leave := service.Join(first, false)
	service.Join(second, true)
	service.Release(t.Context(), []string{"a", "b"})
	leave()
	service.Release(t.Context(), []string{"c"})
	service.Suspend(t.Context())
	assert.Equal(t, &analysis{forgotten: []string{"a", "b"}}, first)
	assert.Equal(t, &analysis{forgotten: []string{"a", "b", "c"}, suspended: true}, second)
	service.Resume(t.Context())
	assert.False(t, second.suspended)
}

// What takes the conclusions of others forgets after them: they may still give some.
func TestRelease_Last_ComesAfterTheOthers(t *testing.T) {
	var r Registry
	var order []string
	note := func(name string) Analysis { return noting(func() { order = append(order, name) }) }
	r.Join(note("last"), true)
	r.Join(note("first"), false)
	r.Release(t.Context(), []string{"a"})
	assert.Equal(t, []string{"first", "last"}, order)
}

type noting func()

func (n noting) Forget(context.Context, []string) { n() }
func (n noting) Suspend(context.Context)          { n() }
func (n noting) Resume(context.Context)           { n() }

type analysis struct {
	forgotten []string
	suspended bool
}

func (a *analysis) Forget(_ context.Context, ids []string) { a.forgotten = append(a.forgotten, ids...) }
func (a *analysis) Suspend(context.Context)                { a.suspended = true }
func (a *analysis) Resume(context.Context)                 { a.suspended = false }

func TestFind_WrongExtension_IsNamed(t *testing.T) {
	id := component.MustNewID("jobs")
	_, err := Find(host{}, id)
	assert.EqualError(t, err, "find extension jobs: got none; want it in service::extensions")
	_, err = Find(host{id: &other{}}, id)
	assert.EqualError(t, err, "find extension jobs: got an extension of another type; want jobs")
}
