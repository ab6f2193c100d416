// SPDX-License-Identifier: Apache-2.0

// Package jobs connects a source that shares jobs with other collectors to the analyses behind it: a job that
// goes to another collector is forgotten here, so that its open steps are not concluded twice.
package jobs

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/component/services"
)

// Analysis is what works on jobs.
type Analysis interface {
	// Forget drops jobs, and concludes nothing of them. It returns once they are dropped, or ctx is done.
	Forget(ctx context.Context, ids []string)
	// Suspend has an analysis of steps conclude none that is incomplete, from time or because it stops, until Resume:
	// its source is cut off, and another collector may read the same again. Steps that become complete are concluded.
	// For other analyses it changes nothing.
	Suspend(ctx context.Context)
	// Resume ends that. Deadlines of open steps begin anew.
	Resume(ctx context.Context)
}

// Service is what the extension jobs offers.
type Service interface {
	// Join passes what happens to jobs to an analysis, until leave is called. Last is true for one that takes what
	// others conclude.
	Join(a Analysis, last bool) (leave func())
	// Release has all analyses forget jobs, and returns once they have, or ctx is done.
	Release(ctx context.Context, ids []string)
	// Suspend has all analyses of steps keep open what is incomplete, until Resume.
	Suspend(ctx context.Context)
	// Resume has all analyses go on.
	Resume(ctx context.Context)
}

// Find returns the service of an extension.
func Find(host component.Host, id component.ID) (Service, error) {
	return services.Find[Service](host, id, "jobs") //nolint:wrapcheck // says what it is
}

// Registry is a [Service]. Its zero value is ready for use.
type Registry struct {
	mu     sync.Mutex
	next   int
	joined [2]map[int]Analysis // the last apart
}

// Join implements [Service].
func (r *Registry) Join(a Analysis, last bool) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := &r.joined[0]
	if last {
		of = &r.joined[1]
	}
	if *of == nil {
		*of = map[int]Analysis{}
	}
	key := r.next
	r.next++
	(*of)[key] = a
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(*of, key)
	}
}

// Release implements [Service].
func (r *Registry) Release(ctx context.Context, ids []string) {
	r.each(func(a Analysis) { a.Forget(ctx, ids) })
}

// Suspend implements [Service].
func (r *Registry) Suspend(ctx context.Context) { r.each(func(a Analysis) { a.Suspend(ctx) }) }

// Resume implements [Service].
func (r *Registry) Resume(ctx context.Context) { r.each(func(a Analysis) { a.Resume(ctx) }) }

// each calls a function with every analysis, all at once, and then with the last, and waits for them.
func (r *Registry) each(call func(Analysis)) {
	for i := range r.joined {
		r.mu.Lock()
		all := slices.Collect(maps.Values(r.joined[i]))
		r.mu.Unlock()
		var wait sync.WaitGroup
		for _, a := range all {
			wait.Go(func() { call(a) })
		}
		wait.Wait()
	}
}
