package warmstart_test

import (
	"context"
	"iter"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/warmstart"
)

// BenchmarkEvents passes on the events of a source in memory, and writes each to a file.
func BenchmarkEvents(b *testing.B) {
	w := must.Get(warmstart.New(endless{}, warmstart.Options{Path: filepath.Join(b.TempDir(), "file"), Cluster: "test", BytesPerMinute: 1 << 40}))(b)
	defer w.Close()
	must.Get(w.List(b.Context(), api.Options[*configMap]{}, func(*configMap) error { return nil }))(b)
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
