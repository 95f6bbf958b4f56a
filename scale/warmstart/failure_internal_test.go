package warmstart

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestHeaders changes each part of a header.
func TestHeaders(t *testing.T) {
	want := header{Format: format, Boot: "boot", Type: "*main.Node"}
	require.NoError(t, want.check(want))
	for _, tc := range []struct {
		change func(*header)
		is     error
		says   string
	}{
		{func(h *header) { h.Format = 7 }, errMalformed, "its format is 7, and this program has format 2"},
		{func(h *header) { h.Boot = "other" }, errRebooted, "has started since"},
		{func(h *header) { h.Resource = "pods.v1" }, errOther, `its resource is "pods.v1", and not ""`},
		{func(h *header) { h.Namespace = "shop" }, errOther, `its namespace is "shop"`},
		{func(h *header) { h.Shard = "ranges" }, errOther, `its shardSelector is "ranges", and not ""`},
		{func(h *header) { h.MediaType = "x" }, errOther, "its mediaType"},
		{func(h *header) { h.Type = "*main.Pod" }, errOther, `its type is "*main.Pod"`},
		{func(h *header) { h.TypeContents = "abc" }, errOther, "the fields of *main.Node have changed since"},
	} {
		have := want
		tc.change(&have)
		err := want.check(have)
		require.ErrorIs(t, err, tc.is)
		require.ErrorContains(t, err, tc.says)
	}
	type before struct{ A string }
	type after struct {
		A string `json:"b"`
	}
	r := api.Resource{Version: "v1", Kind: "A", Plural: "as"}
	require.NotEqual(t, newObjects[*before](r).contents, newObjects[*after](r).contents)
}

// source is a collection with one object, which changes once in each watch.
type source struct{}

func (source) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Kind: "A", Plural: "as"}}
}

func (source) List(_ context.Context, _ api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{ResourceVersion: "10"}, each(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "9"}})
}

func (source) Watch(context.Context, api.Options[*metav1.PartialObjectMetadata]) iter.Seq2[api.Event[*metav1.PartialObjectMetadata], error] {
	return func(yield func(api.Event[*metav1.PartialObjectMetadata], error) bool) {
		yield(api.Event[*metav1.PartialObjectMetadata]{
			Type: watch.Modified, ResourceVersion: "12",
			Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "12"}},
		}, nil)
	}
}

// TestADiskThatFails closes the file behind the back of its owner. The event still arrives, and no later process uses
// the file.
func TestADiskThatFails(t *testing.T) {
	type object = metav1.PartialObjectMetadata
	o := Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"}
	start := func() *ListerWatcher[*object] {
		w := must.Get(New[*object](source{}, o))(t)
		must.Get(w.List(t.Context(), api.Options[*object]{}, func(*object) error { return nil }))(t)
		return w
	}
	next := func(w *ListerWatcher[*object]) (version string) {
		for e, err := range w.Watch(t.Context(), api.Options[*object]{}) {
			require.NoError(t, err)
			version = e.ResourceVersion
		}
		return version
	}
	w := start()
	require.NoError(t, w.Status().Stopped)
	readOnly := must.Get(os.Open(o.Path))(t)
	require.NoError(t, w.file.file.Close())
	w.file.file = readOnly
	require.Equal(t, "12", next(w))
	require.ErrorContains(t, w.Status().Stopped, "bad file descriptor")
	require.NoError(t, w.Close())

	w = start()
	require.False(t, w.Status().Warm)
	require.Equal(t, "12", next(w))
	require.NoError(t, w.Status().Stopped)
	require.NoError(t, w.Close())
	w = start()
	require.True(t, w.Status().Warm)
	require.Equal(t, "12", w.Status().Version)
	require.NoError(t, w.Close())

	require.NoError(t, os.RemoveAll(filepath.Dir(o.Path)))
	o.Path = filepath.Join(filepath.Dir(o.Path), "file")
	require.Error(t, must.Err(New[*object](source{}, o)))
}

// pages is a collection of two objects, whose list has a page for each. The second page is newer than the first one.
type pages struct{ source }

func (pages) List(_ context.Context, o api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error) (metav1.ListMeta, error) {
	name, meta := "a", metav1.ListMeta{ResourceVersion: "10", Continue: "b"}
	if o.Continue != "" {
		name, meta = "b", metav1.ListMeta{ResourceVersion: "13"}
	}
	return meta, each(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "9"}})
}

// TestPagesOfSeveralVersions ends after a list, before the watch from the version of the first page. The next process
// continues from this version too, because the first page lacks the changes that follow.
func TestPagesOfSeveralVersions(t *testing.T) {
	type object = metav1.PartialObjectMetadata
	o := Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"}
	for _, warm := range []bool{false, true} {
		w := must.Get(New[*object](pages{}, o))(t)
		var names []string
		list := api.Options[*object]{}
		for list.Continue != "" || len(names) == 0 {
			meta := must.Get(w.List(t.Context(), list, func(o *object) error { names = append(names, o.Name); return nil }))(t)
			list.Continue = meta.Continue
		}
		require.Equal(t, []string{"a", "b"}, names)
		require.NoError(t, w.Close())
		require.Equal(t, warm, w.Status().Warm)
		if warm {
			require.Equal(t, "10", w.Status().Version)
		}
	}
}

// TestAListFromTheFileFails has an object in the file that cannot be decoded. The status says that the first list came
// from the server, and why.
func TestAListFromTheFileFails(t *testing.T) {
	type object = metav1.PartialObjectMetadata
	o := Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"}
	list := func(w *ListerWatcher[*object]) error {
		_, err := w.List(t.Context(), api.Options[*object]{}, func(*object) error { return nil })
		return err
	}
	w := must.Get(New[*object](source{}, o))(t)
	require.NoError(t, list(w))
	require.NoError(t, w.write(w.file, record{kind: put, version: "9", key: api.Key{Name: "a"}, data: []byte("\xff")}))
	require.NoError(t, w.Close())

	w = must.Get(New[*object](source{}, o))(t)
	require.ErrorContains(t, list(w), "warmstart: read "+o.Path)
	require.NoError(t, list(w))
	s := w.Status()
	require.ErrorContains(t, s.Cold, "warmstart: read "+o.Path)
	require.NotZero(t, s.Bytes)
	s.Cold, s.Bytes = nil, 0
	require.Equal(t, Status{}, s)
	require.NoError(t, w.Close())
}

// versions is a collection without objects, whose lists have these versions.
type versions struct {
	source
	left []string
}

func (v *versions) List(context.Context, api.Options[*metav1.PartialObjectMetadata], func(*metav1.PartialObjectMetadata) error) (metav1.ListMeta, error) {
	next := v.left[0]
	v.left = v.left[1:]
	return metav1.ListMeta{ResourceVersion: next}, nil
}

// quiet is a collection whose watches end without an event.
type quiet struct {
	api.ListerWatcher[*metav1.PartialObjectMetadata]
}

func (quiet) Watch(context.Context, api.Options[*metav1.PartialObjectMetadata]) iter.Seq2[api.Event[*metav1.PartialObjectMetadata], error] {
	return func(func(api.Event[*metav1.PartialObjectMetadata], error) bool) {}
}

// TestOldListsThatAreRefused gets an old list twice, which the informer refuses. The second one is no newer than the
// first, but older than what the informer shows, so it does not become the file either. When the informer watches from
// the old version, as after a restore of the server, the next list becomes the file.
func TestOldListsThatAreRefused(t *testing.T) {
	type object = metav1.PartialObjectMetadata
	o := Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"}
	w := must.Get(New[*object](&versions{left: []string{"10", "9", "9", "9"}}, o))(t)
	list := func() { must.Get(w.List(t.Context(), api.Options[*object]{}, func(*object) error { return nil }))(t) }
	list()
	require.FileExists(t, o.Path)
	for range 2 {
		list()
		require.NoFileExists(t, o.Path)
		require.ErrorContains(t, w.Status().Stopped, "version 9 follows 10")
	}
	w.source = quiet{w.source}
	for range w.Watch(t.Context(), api.Options[*object]{ListOptions: metav1.ListOptions{ResourceVersion: "9"}}) {
	}
	list()
	require.FileExists(t, o.Path)
	require.NoError(t, w.Close())
}
