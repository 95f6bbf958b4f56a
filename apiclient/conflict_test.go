package apiclient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var errModified = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("it was modified"))

// waits returns the times between the tries of a write that always fails with err.
func waits(ctx context.Context, o apiclient.ConflictOptions, err error) ([]time.Duration, error) {
	var between []time.Duration
	last := time.Now()
	got := apiclient.RetryOnConflict(ctx, o, func(context.Context) error {
		between = append(between, time.Since(last))
		last = time.Now()
		return err
	})
	return between, got
}

func TestRetryOnConflict(t *testing.T) {
	const ms = time.Millisecond
	half := func() float64 { return 0.5 }
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		between, err := waits(ctx, apiclient.ConflictOptions{Rand: half}, errModified)
		require.Equal(t, []time.Duration{0, 10500 * time.Microsecond, 10500 * time.Microsecond, 10500 * time.Microsecond, 10500 * time.Microsecond}, between)
		require.True(t, apierrors.IsConflict(err))
		require.EqualError(t, err, "after 5 tries: "+errModified.Error())

		o := apiclient.ConflictOptions{Tries: 4, Wait: 2 * ms, Factor: 5, Jitter: -1}
		between, err = waits(ctx, o, errModified)
		require.Equal(t, []time.Duration{0, 2 * ms, 10 * ms, 50 * ms}, between)
		require.Error(t, err)
		between, _ = waits(ctx, apiclient.ConflictOptions{}, errModified)
		require.Len(t, between, 5)
		for _, wait := range between[1:] {
			require.True(t, wait >= 10*ms && wait <= 11*ms, "%v", wait)
		}

		other := errors.New("no conflict")
		fields := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("it is owned"))
		fields.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}}
		for _, want := range []error{nil, other, fields} {
			between, err = waits(ctx, apiclient.ConflictOptions{}, want)
			require.Equal(t, want, err, "the error is not wrapped")
			require.Len(t, between, 1)
		}

		short, cancel := context.WithTimeout(ctx, 3*ms)
		defer cancel()
		started := time.Now()
		_, err = waits(short, o, errModified)
		require.Equal(t, 3*ms, time.Since(started))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsConflict(err))
	})
}

// TestWritersMeet has two writers of one object. The one that read it first must read it again.
func TestWritersMeet(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		pods := apiclient.NewTyped[*corev1.Pod](c, podResource, "default")
		must.Get(pods.Create(t.Context(), newPod("web"), metav1.CreateOptions{}))(t)
		tries := 0
		err := apiclient.RetryOnConflict(t.Context(), apiclient.ConflictOptions{}, func(ctx context.Context) error {
			pod, err := pods.Get(ctx, web, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if tries++; tries < 3 {
				_, err = pods.Patch(ctx, web, patchOf(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"try": string(rune('0' + tries))}}}), apiclient.PatchOptions{})
				require.NoError(t, err)
			}
			pod.Labels = map[string]string{"seen": "yes"}
			_, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
			return err
		})
		require.NoError(t, err)
		require.Equal(t, 3, tries)
		u := must.Get(s.Get(podResource, api.Key{Namespace: "default", Name: "web"}))(t)
		require.Equal(t, "yes", u.GetLabels()["seen"])
		require.Equal(t, "2", u.GetAnnotations()["try"], "no write is lost")
	})
}

func patchOf(t *testing.T, v any) apiclient.Patch {
	t.Helper()
	return must.Get(apiclient.MergePatch(v))(t)
}
