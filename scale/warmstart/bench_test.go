package warmstart_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/warmstart"
	"github.com/leatproject/leat/testserver"
)

// BenchmarkFirstList lists 5,000 objects of 8 KB, of which T has a small part, from a server in memory and from a file.
func BenchmarkFirstList(b *testing.B) {
	f := fixture.New(b, testserver.Options{})
	for i := range 5_000 {
		f.Create(configMaps, &configMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("m-", i), Labels: map[string]string{"app": "web"}},
			Data:       map[string]string{"value": strings.Repeat("x", 8<<10)},
		})
	}
	source := apiclient.NewPartial[*metav1.PartialObjectMetadata](f.Client, configMaps, "")
	list := func(from api.ListerWatcher[*metav1.PartialObjectMetadata]) {
		n := 0
		_, err := from.List(b.Context(), api.Options[*metav1.PartialObjectMetadata]{}, func(*metav1.PartialObjectMetadata) error {
			n++
			return nil
		})
		require.NoError(b, err)
		require.Equal(b, 5_000, n)
	}
	o := warmstart.Options{Path: filepath.Join(b.TempDir(), "file"), Cluster: "test"}
	b.Run("server", func(b *testing.B) {
		for b.Loop() {
			list(source)
		}
	})
	b.Run("server and file", func(b *testing.B) {
		for b.Loop() {
			w, err := warmstart.New(source, o)
			require.NoError(b, err)
			list(w)
			require.NoError(b, w.Close())
			o.Cluster += "." // so that the next turn does not use the file
		}
		w, err := warmstart.New(source, o) // for the next row
		require.NoError(b, err)
		list(w)
		require.NoError(b, w.Close())
	})
	b.Run("file", func(b *testing.B) {
		for b.Loop() {
			w, err := warmstart.New(source, o)
			require.NoError(b, err)
			list(w)
			require.NoError(b, w.Close())
		}
	})
}

// BenchmarkEvents passes on the events of a source in memory, and writes each to a file.
func BenchmarkEvents(b *testing.B) {
	w, err := warmstart.New(endless{}, warmstart.Options{Path: filepath.Join(b.TempDir(), "file"), Cluster: "test", BytesPerMinute: 1 << 40})
	require.NoError(b, err)
	defer w.Close()
	_, err = w.List(b.Context(), api.Options[*configMap]{}, func(*configMap) error { return nil })
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for range w.Watch(b.Context(), api.Options[*configMap]{}) {
		if n++; n > b.N {
			break
		}
	}
	require.NoError(b, w.Status().Stopped)
}

// endless is a collection that changes as fast as it is read.
type endless struct{}

func (endless) Collection() api.Collection { return api.Collection{Resource: configMaps} }

func (endless) List(context.Context, api.Options[*configMap], func(*configMap) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{ResourceVersion: "1"}, nil
}

func (endless) Watch(context.Context, api.Options[*configMap]) iter.Seq2[api.Event[*configMap], error] {
	return func(yield func(api.Event[*configMap], error) bool) {
		o := &configMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: "00000000-0000-4000-8000-000000000005", Labels: map[string]string{"app": "web"},
		}, Data: map[string]string{"phase": "Running", "node": "n-17"}}
		for version := 2; ; version++ {
			o.ResourceVersion = strconv.Itoa(version)
			if !yield(api.Event[*configMap]{Type: watch.Modified, Object: o, ResourceVersion: o.ResourceVersion}, nil) {
				return
			}
		}
	}
}
