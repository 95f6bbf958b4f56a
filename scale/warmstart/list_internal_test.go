package warmstart

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

type metadata = metav1.PartialObjectMetadata

// many is a collection of many objects. It has a codec.
type many struct {
	source
	own *codec.Codec[*metadata]
}

func (m many) Codec() *codec.Codec[*metadata] { return m.own }

func (many) List(_ context.Context, _ api.Options[*metadata], each func(*metadata) error) (metav1.ListMeta, error) {
	for i := range 5*partSize + 1 {
		o := &metadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("m-", i), ResourceVersion: "9", Labels: map[string]string{"app": "web", "tier": "front"},
		}}
		if err := each(o); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "10"}, nil
}

// TestPartsAreInOrder lists from a file of several parts, with one goroutine and with several. A list that is refused
// or canceled in the middle leaves no goroutine, or the bubble would not end.
func TestPartsAreInOrder(t *testing.T) {
	for _, processors := range []int{1, 3} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			before := runtime.GOMAXPROCS(processors)
			defer runtime.GOMAXPROCS(before)
			o := Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"}
			from := many{own: codec.New[*metadata](codec.Options{})}
			list := func(ctx context.Context, each func(*metadata) error) error {
				w, err := New[*metadata](from, o)
				require.NoError(t, err)
				defer func() { require.NoError(t, w.Close()) }()
				require.Same(t, from.own, w.codec)
				meta, err := w.List(ctx, api.Options[*metadata]{ShareParts: true}, each)
				if err == nil {
					require.Equal(t, "10", meta.ResourceVersion)
				}
				return err
			}
			require.NoError(t, list(t.Context(), func(*metadata) error { return nil }), "from the source")
			synctest.Test(t, func(t *testing.T) {
				var got []string
				require.NoError(t, list(t.Context(), func(object *metadata) error {
					require.Equal(t, "web", object.Labels["app"])
					got = append(got, object.Name)
					return nil
				}))
				require.Len(t, got, 5*partSize+1)
				for i, name := range got {
					require.Equal(t, fmt.Sprint("m-", i), name)
				}
				n, refused := 0, errors.New("no")
				require.ErrorIs(t, list(t.Context(), func(*metadata) error {
					if n++; n > partSize+7 {
						return refused
					}
					return nil
				}), refused)
				ctx, cancel := context.WithCancel(t.Context())
				n = 0
				require.ErrorIs(t, list(ctx, func(*metadata) error {
					if n++; n == 2*partSize {
						cancel()
					}
					return nil
				}), context.Canceled)
			})
		})
	}
}
