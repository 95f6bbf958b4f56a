package conditions_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/reconcile/conditions"
)

const volume = "example.org/volume"

func TestFinalizers(t *testing.T) {
	o := &metav1.ObjectMeta{Finalizers: []string{"a", "b"}}
	cached := o.Finalizers
	require.False(t, conditions.AddFinalizer(o, "a"))
	require.True(t, conditions.AddFinalizer(o, volume))
	require.True(t, conditions.HasFinalizer(o, volume))
	require.Equal(t, []string{"a", "b", volume}, o.Finalizers)
	require.True(t, conditions.RemoveFinalizer(o, "a"))
	require.False(t, conditions.RemoveFinalizer(o, "a"))
	require.False(t, conditions.HasFinalizer(o, "a"))
	require.Equal(t, []string{"b", volume}, o.Finalizers)
	require.Equal(t, []string{"a", "b"}, cached, "a slice that others may hold was written to")
}

func TestFinalize(t *testing.T) {
	no := errors.New("no")
	now := metav1.Now()
	for name, c := range map[string]struct {
		dying, there bool
		fail         string // the function that fails
		did          []string
		left         bool // whether the finalizer is there at the end
		says         string
	}{
		"new":                         {did: []string{"update", "apply"}, left: true},
		"new, not written":            {fail: "update", did: []string{"update"}, says: "conditions: write finalizer example.org/volume: no"},
		"known":                       {there: true, did: []string{"apply"}, left: true},
		"known, fails":                {there: true, fail: "apply", did: []string{"apply"}, left: true, says: "no"},
		"going":                       {dying: true, there: true, did: []string{"cleanup", "update"}},
		"going, not cleaned up":       {dying: true, there: true, fail: "cleanup", did: []string{"cleanup"}, left: true, says: "conditions: clean up for finalizer example.org/volume: no"},
		"going, cleaned, not written": {dying: true, there: true, fail: "update", did: []string{"cleanup", "update"}, left: true, says: "write finalizer"},
		"gone":                        {dying: true},
	} {
		t.Run(name, func(t *testing.T) {
			var did []string
			do := func(what string) error {
				did = append(did, what)
				if c.fail == what {
					return no
				}
				return nil
			}
			cached := &metav1.ObjectMeta{Finalizers: []string{"other"}}
			if c.dying {
				cached.DeletionTimestamp = &now
			}
			if c.there {
				cached.Finalizers = append(cached.Finalizers, volume)
			}
			before, stored := cached.DeepCopy(), cached
			f := conditions.Finalizer[*metav1.ObjectMeta]{
				Name: volume,
				Copy: (*metav1.ObjectMeta).DeepCopy,
				Update: func(_ context.Context, o *metav1.ObjectMeta) (*metav1.ObjectMeta, error) {
					err := do("update")
					if err == nil {
						stored = o
						stored.ResourceVersion = "2"
					}
					return o, err
				},
				Apply: func(_ context.Context, o *metav1.ObjectMeta) error {
					require.Same(t, stored, o, "the function got another object than the stored one")
					return do("apply")
				},
				Cleanup: func(_ context.Context, o *metav1.ObjectMeta) error { return do("cleanup") },
			}
			err := f.Finalize(t.Context(), cached)
			require.Equal(t, c.did, did)
			require.Equal(t, c.left, conditions.HasFinalizer(stored, volume))
			require.Contains(t, stored.Finalizers, "other")
			require.Equal(t, before, cached, "the object of the cache was changed")
			if c.fail == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, no)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestAFinalizerNamesWhatIsMissing has no fields, and an object that needs none of the functions.
func TestAFinalizerNamesWhatIsMissing(t *testing.T) {
	err := conditions.Finalizer[*metav1.ObjectMeta]{}.Finalize(t.Context(), &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}})
	for _, field := range []string{"Name", "Update", "Apply", "Cleanup"} {
		require.ErrorContains(t, err, "conditions: Finalizer."+field+" is missing")
	}
	require.NotContains(t, err.Error(), "Copy")
}

// oven is an object without a DeepCopy of its own.
type oven struct {
	metav1.ObjectMeta

	Spec struct{ Trays []string }
}

func TestAFinalizerNeedsNoCopy(t *testing.T) {
	cached := &oven{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"other"}}}
	cached.Spec.Trays = []string{"upper"}
	var applied *oven
	f := conditions.Finalizer[*oven]{
		Name:    volume,
		Update:  func(_ context.Context, o *oven) (*oven, error) { return o, nil },
		Apply:   func(_ context.Context, o *oven) error { applied = o; return nil },
		Cleanup: func(context.Context, *oven) error { return nil },
	}
	require.NoError(t, f.Finalize(t.Context(), cached))
	require.Equal(t, []string{"other"}, cached.Finalizers, "the object of the cache was changed")
	require.Equal(t, []string{"other", volume}, applied.Finalizers)
	applied.Spec.Trays[0] = "lower"
	require.Equal(t, "upper", cached.Spec.Trays[0])
}

func ExampleFinalizer_Finalize() {
	f := conditions.Finalizer[*metav1.ObjectMeta]{
		Name: "example.org/volume",
		Copy: (*metav1.ObjectMeta).DeepCopy,
		Update: func(_ context.Context, o *metav1.ObjectMeta) (*metav1.ObjectMeta, error) { // a real program calls Update here
			fmt.Println("finalizers:", o.Finalizers)
			return o, nil
		},
		Apply:   func(context.Context, *metav1.ObjectMeta) error { fmt.Println("make the volume"); return nil },
		Cleanup: func(context.Context, *metav1.ObjectMeta) error { fmt.Println("remove the volume"); return nil },
	}
	now := metav1.Now()
	fmt.Println(f.Finalize(context.Background(), &metav1.ObjectMeta{Name: "data"}))
	fmt.Println(f.Finalize(context.Background(), &metav1.ObjectMeta{
		Name: "data", DeletionTimestamp: &now, Finalizers: []string{"example.org/volume"},
	}))
	// Output:
	// finalizers: [example.org/volume]
	// make the volume
	// <nil>
	// remove the volume
	// finalizers: []
	// <nil>
}
