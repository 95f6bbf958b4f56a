package trace_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trace"
)

type object = *metav1.PartialObjectMetadata

func named(name, version string) object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// canned is a ListerWatcher with a fixed answer.
type canned struct {
	objects []object
	events  []api.Event[object]
	err     error
}

func (c canned) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Plural: "things"}}
}

func (c canned) List(_ context.Context, _ api.Options[object], each func(object) error) (metav1.ListMeta, error) {
	for _, o := range c.objects {
		if err := each(o); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "9"}, c.err
}

func (c canned) Watch(context.Context, api.Options[object]) iter.Seq2[api.Event[object], error] {
	return func(yield func(api.Event[object], error) bool) {
		for _, e := range c.events {
			if !yield(e, nil) {
				return
			}
		}
		if c.err != nil {
			yield(api.Event[object]{}, c.err)
		}
	}
}

func TestTracedListerWatcherIsTransparent(t *testing.T) {
	broken := errors.New("broken")
	below := canned{
		objects: []object{named("a", "1"), named("b", "2")},
		events: []api.Event[object]{
			{Type: watch.Added, Object: named("c", "3"), ResourceVersion: "3"},
			{Type: watch.Bookmark, ResourceVersion: "4"},
		},
		err: broken,
	}
	var lines strings.Builder
	traced := trace.ListerWatcher[object](trace.To(&lines, func() string { return "at noon " }), below)
	require.Equal(t, below.Collection(), traced.Collection())

	var listed []object
	meta, err := traced.List(t.Context(), api.Options[object]{}, func(o object) error {
		listed = append(listed, o)
		return nil
	})
	require.Equal(t, below.objects, listed)
	require.Equal(t, "9", meta.ResourceVersion)
	require.ErrorIs(t, err, broken)

	var events []api.Event[object]
	for e, failure := range traced.Watch(t.Context(), api.Options[object]{}) {
		if err = failure; err == nil {
			events = append(events, e)
		}
	}
	require.Equal(t, below.events, events)
	require.ErrorIs(t, err, broken)
	for range traced.Watch(t.Context(), api.Options[object]{}) {
		break // the iterator must not call the loop again
	}
	require.Contains(t, lines.String(), "  at noon apiclient  things       ADDED c version 3\n")
	require.Contains(t, lines.String(), "the watch failed: broken")
}

func TestNilPrinterIsSilent(t *testing.T) {
	var nobody *trace.Printer
	require.NotPanics(t, func() {
		nobody.Line("stage", "things", "nothing %d", 1)
		nobody.Printf("nothing")
	})
}

func TestRequestsAreDescribed(t *testing.T) {
	yes := true
	for want, o := range map[string]metav1.ListOptions{
		"list any version, at most 500":                         {ResourceVersion: "0", Limit: 500},
		"list the newest version":                               {},
		"list from version 7":                                   {ResourceVersion: "7"},
		"list the next page, at most 2":                         {Continue: "token", Limit: 2},
		"list with the initial state, not older than version 5": {ResourceVersion: "5", SendInitialEvents: &yes},
		"list with the initial state":                           {SendInitialEvents: &yes},
	} {
		var lines strings.Builder
		_, err := trace.ListerWatcher[object](trace.To(&lines, nil), canned{}).
			List(t.Context(), api.Options[object]{ListOptions: o}, func(object) error { return nil })
		require.NoError(t, err)
		require.Contains(t, lines.String(), fmt.Sprintf("%s\n", want))
	}
}
