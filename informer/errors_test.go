package informer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestEveryErrorIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, lw := serve(t, testserver.Options{})
		o := options(t)
		var reported []error
		o.OnError = func(err error) { reported = append(reported, err) }
		o.NoWatchList = true
		i := informer.New(lw, o)
		forbidden := server.Inject(faults.Fault{Effect: faults.Fail{Code: 403, Message: "widgets is forbidden"}})
		running(t, i)
		synctest.Wait()
		require.Len(t, reported, 1)
		require.True(t, apierrors.IsForbidden(reported[0]), "the error must have the server's Status")
		status := i.Status()
		require.False(t, status.Synced)
		require.Equal(t, reflector.Waiting, status.Reflector.Phase)
		require.Equal(t, reported[0], status.Reflector.Err)
		require.Contains(t, status.String(), "not synced")
		require.Contains(t, status.String(), "widgets is forbidden", "the cause must be in the status")

		forbidden.Remove()
		<-i.Synced()
		synctest.Wait()
		require.Nil(t, i.Status().Reflector.Err, "the failure must be overcome")
		require.Equal(t, reported[0], i.Status().Reflector.LastError, "LastError must stay")

		server.Inject(faults.Fault{Effect: faults.Disconnect{Error: &metav1.Status{
			Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: "etcdserver: leader changed",
		}}})
		synctest.Wait()
		require.Len(t, reported, 2, "an error in the stream counts")
		require.ErrorContains(t, reported[1], "leader changed")
		<-time.After(time.Minute)
	})
}

// TestLongRetryAfterIsShortenedAndShown has a server that requests a pause of hours, in an answer and in an ERROR
// event. The informer tries again within minutes, and its Status shows the requested pause.
func TestLongRetryAfterIsShortenedAndShown(t *testing.T) {
	for name, effects := range map[string][]faults.Effect{
		"an answer": {faults.Fail{Code: 429, RetryAfter: time.Hour}, faults.Disconnect{}},
		"an ERROR event": {faults.Disconnect{Error: &metav1.Status{
			Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
			Details: &metav1.StatusDetails{RetryAfterSeconds: 3600},
		}}},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			i := informer.New(lw, options(t))
			running(t, i)
			<-i.Synced()
			synctest.Wait()
			for _, effect := range effects {
				server.Inject(faults.Fault{Effect: effect, Times: 1})
			}
			<-time.After(5 * time.Second)
			synctest.Wait()
			status := i.Status()
			require.Equal(t, time.Hour, status.Reflector.RetryAfter)
			require.Contains(t, status.String(), "the server asked for a pause of 1h0m0s")
			require.LessOrEqual(t, time.Until(status.Reflector.NextAttempt), 4*time.Minute, "two minutes, and the jitter")

			must.Get(server.Create(widgets, named("new", 9)))(t)
			<-time.After(4 * time.Minute)
			synctest.Wait()
			require.Equal(t, 4, i.Snapshot().Len())
			require.NotContains(t, i.Status().String(), "pause")
		})
	}
}

func TestRemoveAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New(newSource(), options(t))
		registration := subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{})
		stop := running(t, i)
		<-registration.Synced()
		stop()
		<-registration.Done()
		require.Len(t, i.Status().Handlers, 1, "Status must show the handlers after Run, too")
		registration.Remove()
		require.Empty(t, i.Status().Handlers)
		require.Zero(t, registration.Pending())
	})
}
