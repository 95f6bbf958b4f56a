package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/workqueue"
)

// Spec is a controller and its sources as one value. Use it when invalid options should be an error instead of a panic,
// for instance because they come from a command line. New and Watch can do everything that Spec can. It replaces
// TypedBuilder of controller-runtime.
type Spec[K comparable] struct {
	Name       string
	Reconciler Reconciler[K]
	// Sources needs at least one source; use New for a controller without sources.
	Sources []Source[K]
	Options Options
	// Limiters are the limiters of New.
	Limiters []workqueue.RateLimiter[K]
}

// Build returns the controller, which watches the sources. If anything is invalid, it returns all errors, joined.
func (s Spec[K]) Build() (*Controller[K], error) {
	problems := s.problems()
	if len(s.Sources) == 0 {
		problems = append(problems, errors.New("there is no source: Sources is empty"))
	}
	for i, source := range s.Sources {
		if source == nil {
			problems = append(problems, fmt.Errorf("source %d is nil", i))
		}
	}
	if len(problems) > 0 {
		return nil, s.wrap(problems)
	}
	c := New(s.Name, s.Reconciler, s.Options, s.Limiters...)
	for _, source := range s.Sources {
		c.Watch(source)
	}
	return c, nil
}

// wrap joins errors, each with the name of the controller.
func (s Spec[K]) wrap(problems []error) error {
	name := s.Name
	if name == "" {
		name = "without a name"
	}
	for i, err := range problems {
		problems[i] = fmt.Errorf("controller: %s: %w", name, err)
	}
	return errors.Join(problems...)
}

// problems returns everything that New rejects.
func (s Spec[K]) problems() (all []error) {
	o := s.Options
	for _, check := range []struct {
		wrong  bool
		saying string
	}{
		{s.Name == "", "Name is empty"},
		{s.Reconciler == nil, "Reconciler is nil"},
		{o.Workers < 0, fmt.Sprintf("Workers is %d; it must not be negative", o.Workers)},
		{o.DefaultWorkers < 0, fmt.Sprintf("DefaultWorkers is %d; it must not be negative", o.DefaultWorkers)},
		{o.MaxRetries < 0, fmt.Sprintf("MaxRetries is %d; it must not be negative", o.MaxRetries)},
		{o.ReconcileTimeout < 0, fmt.Sprintf("ReconcileTimeout is %v; it must not be negative", o.ReconcileTimeout)},
		{slices.ContainsFunc(s.Limiters, func(l workqueue.RateLimiter[K]) bool { return l == nil }), "a limiter is nil"},
	} {
		if check.wrong {
			all = append(all, errors.New(check.saying))
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(o.KindWorkers), compareKinds) {
		if n := o.KindWorkers[kind]; n < 1 {
			all = append(all, fmt.Errorf("KindWorkers is %d for %s; it must be positive", n, kind))
		}
	}
	if err := caught(func() { workqueue.New(o.Queue, s.Limiters...) }); err != nil {
		all = append(all, err)
	}
	return all
}

func compareKinds(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }

// caught returns the value that f panics with, as an error.
func caught(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}
