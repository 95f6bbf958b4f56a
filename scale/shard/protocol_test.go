package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/shard"
)

// line is a connection that can be cut. While it is cut, requests get no answer, and they do not notice the end of
// their context: so does a process that is stopped.
type line struct{ cut atomic.Pointer[chan struct{}] }

func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if c := l.cut.Load(); c != nil {
			<-*c
			return nil, context.Cause(r.Context())
		}
		return next.RoundTrip(r)
	})
}

func (l *line) stop() (again func()) {
	c := make(chan struct{})
	l.cut.Store(&c)
	return func() {
		l.cut.Store(nil)
		close(c)
	}
}

// begin begins work on a hash that the replica has.
func begin(t *testing.T, r *replica, hash uint64) (context.Context, func()) {
	t.Helper()
	ctx, end, ok := r.Begin(t.Context(), hash)
	require.True(t, ok)
	t.Cleanup(end)
	return ctx, end
}

// TestHandOverWaitsForWork lets the second of two replicas join while the first one works in the range that moves.
func TestHandOverWaitsForWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		const low, high = 1, 1<<64 - 1
		ctx, end := begin(t, a, high)
		b := join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(time.Minute)
		require.NoError(t, ctx.Err(), "the hand-over waits, and does not end the work")
		_, _, ok := a.Begin(t.Context(), high)
		require.False(t, ok, "no work begins in a range that must go, or it would never go")
		_, _, ok = b.Begin(t.Context(), high)
		require.False(t, ok)
		require.Equal(t, 1, a.Status().Work)
		require.Equal(t, 0.5, a.Status().Releasing.Share())
		begin(t, a, low)
		end()
		<-time.After(3 * time.Second)
		_, end = begin(t, b, high)
		end()
		require.True(t, a.Status().Releasing.Empty())
	})
}

// TestARangeThatIsWantedAgain ends the second replica before the first one has released the range. Keys were dropped
// meanwhile, so followers must get the range again.
func TestARangeThatIsWantedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		var got []float64
		defer a.Follow(followerFunc(func(held hashrange.Set) { got = append(got, held.Share()) }))()
		_, end := begin(t, a, 1<<64-1)
		b := join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(5 * time.Second)
		b.end()
		<-time.After(5 * time.Second)
		require.Equal(t, 1.0, a.Status().Target.Share())
		require.Equal(t, 0.5, a.Status().Releasing.Share(), "keys of this range were dropped")
		end()
		<-time.After(5 * time.Second)
		require.Equal(t, []float64{1, 0.5, 1}, got)
	})
}

type followerFunc func(hashrange.Set)

func (f followerFunc) Follow(held hashrange.Set) { f(held) }

// TestStoppedProcess stops a process until another one has its ranges.
func TestStoppedProcess(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		a := join(f, shard.Options{Identity: "a"}, l.wrap)
		<-time.After(5 * time.Second)
		ctx, end := begin(t, a, 1)
		b := join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(5 * time.Second)
		again := l.stop()
		<-time.After(time.Until(a.Status().Deadline) - time.Millisecond)
		require.NoError(t, shard.Valid(ctx))
		require.NoError(t, ctx.Err())
		<-time.After(2 * time.Millisecond)
		require.ErrorIs(t, shard.Valid(ctx), shard.ErrLost)
		require.ErrorIs(t, context.Cause(ctx), shard.ErrLost, "a timer ends the contexts, although Run waits for a request")
		_, _, ok := b.Begin(t.Context(), 1)
		require.False(t, ok, "the other replica waits longer than this one works")
		// The other replica sees the last renewal up to RetryPeriod late, waits for LeaseDuration, and looks once in a
		// RetryPeriod: 9 s after the deadline at the latest.
		<-time.After(10 * time.Second)
		begin(t, b, 1)
		again()
		<-time.After(time.Minute)
		require.ErrorIs(t, a.Status().Err, shard.ErrLost, "the replica does not join again before its work has ended")
		require.ErrorContains(t, a.Status().Err, "its work has not ended")
		end()
		<-time.After(10 * time.Second)
		requireDivided(t, a, b)
		require.EqualValues(t, 1, a.Status().Lost)
	})
}

// TestFenceReadsTheClock stops a process with its timers. When it goes on, its next write must not pass.
func TestFenceReadsTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		a := join(f, shard.Options{Identity: "a"}, l.wrap)
		client := f.Connect(func(next http.RoundTripper) http.RoundTripper { return shard.Fence(next) })
		configs := apiclient.NewTyped[*unstructured.Unstructured](client, maps, "default")
		<-time.After(5 * time.Second)
		ctx, end := begin(t, a, 1)
		defer end()
		create := func(ctx context.Context) error {
			o := &unstructured.Unstructured{}
			o.SetGenerateName("mill-")
			_, err := configs.Create(ctx, o, metav1.CreateOptions{})
			return err
		}
		require.NoError(t, create(ctx))
		defer l.stop()()
		a.StopTimer()
		<-time.After(time.Until(a.Status().Deadline))
		synctest.Wait()
		require.NoError(t, ctx.Err(), "the test stopped everything that ends the context")
		err := create(context.WithoutCancel(ctx))
		require.ErrorIs(t, err, shard.ErrLost)
		require.ErrorContains(t, err, "POST /api/v1/namespaces/default/configmaps refused")
		require.ErrorIs(t, context.Cause(ctx), shard.ErrLost, "a refusal ends the contexts")
		for _, err := range configs.Watch(context.WithoutCancel(ctx), api.Options[*unstructured.Unstructured]{}) {
			require.NoError(t, err, "reads pass")
			break
		}
		require.NoError(t, create(t.Context()), "a request of other work passes")
		_, _, ok := a.Begin(t.Context(), 1)
		require.False(t, ok)
	})
}

// TestWorkInsideWork begins work of a group inside the work of another one. A write needs both.
func TestWorkInsideWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		outer := join(f, shard.Options{Identity: "outer"}, l.wrap)
		<-time.After(5 * time.Second)
		inner := must.Get(shard.New(f.Client, shard.Options{Namespace: "default", Group: "inner", Identity: "inner"}))(t)
		stop := f.Start(inner.Run)
		<-time.After(5 * time.Second)
		ctx, end := begin(t, outer, 1)
		ctx, endInner, ok := inner.Begin(ctx, 1)
		require.True(t, ok)
		require.NoError(t, shard.Valid(ctx))
		defer l.stop()()
		<-time.After(11 * time.Second)
		require.ErrorIs(t, shard.Valid(ctx), shard.ErrLost)
		endInner()
		end()
		stop()
	})
}

// TestALateAnswer stops a process with its timers, in the moment in which the answer of a renewal has arrived. When it
// goes on, the deadline has passed. Work was refused, or may have been, so followers must get the ranges again.
func TestALateAnswer(t *testing.T) {
	for name, refused := range map[string]func(t *testing.T, a *replica, ctx context.Context){
		"Begin": func(t *testing.T, a *replica, _ context.Context) {
			_, _, ok := a.Begin(t.Context(), 2)
			require.False(t, ok)
		},
		"Valid": func(t *testing.T, _ *replica, ctx context.Context) {
			require.ErrorIs(t, shard.Valid(ctx), shard.ErrLost)
		},
		"nothing": func(*testing.T, *replica, context.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture.Fixture) {
				var held atomic.Pointer[chan struct{}]
				a := join(f, shard.Options{Identity: "a"}, func(next http.RoundTripper) http.RoundTripper {
					return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
						answer, err := next.RoundTrip(r)
						if c := held.Load(); c == nil || err != nil || r.Method != http.MethodPut {
							return answer, err
						}
						body, err := io.ReadAll(answer.Body)
						require.NoError(t, errors.Join(err, answer.Body.Close()))
						answer.Body = io.NopCloser(bytes.NewReader(body))
						if c := held.Swap(nil); c != nil {
							<-*c
						}
						return answer, nil
					})
				})
				var got []float64
				defer a.Follow(followerFunc(func(held hashrange.Set) { got = append(got, held.Share()) }))()
				<-time.After(5 * time.Second)
				ctx, end := begin(t, a, 1)
				c := make(chan struct{})
				held.Store(&c)
				<-time.After(2 * time.Second)
				require.Nil(t, held.Load(), "a renewal is on its way")
				a.StopTimer()
				<-time.After(time.Until(a.Status().Deadline) + time.Second/2)
				refused(t, a, ctx)
				close(c)
				synctest.Wait()
				require.ErrorIs(t, shard.Valid(ctx), shard.ErrLost, "the renewal does not revive the work")
				require.ErrorIs(t, context.Cause(ctx), shard.ErrLost)
				end()
				<-time.After(5 * time.Second)
				requireDivided(t, a)
				require.Equal(t, []float64{1, 0, 1}, got)
				require.EqualValues(t, 1, a.Status().Lost)
			})
		})
	}
}

// TestDeadMember cuts a replica off for good. The other one has its ranges after LeaseDuration and two retries.
func TestDeadMember(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		a := join(f, shard.Options{Identity: "a"}, l.wrap)
		<-time.After(5 * time.Second)
		b := join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(10 * time.Second)
		requireDivided(t, a, b)
		again := l.stop()
		<-time.After(15*time.Second + 2*2*time.Second)
		requireDivided(t, b)
		again()
		<-time.After(10 * time.Second)
		requireDivided(t, a, b)
	})
}

// TestDeletesHang lets the deletes of five dead members hang. The survivor keeps its own Lease, deletes again in each
// step, and has all ranges when the server answers.
func TestDeletesHang(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		dead := &line{}
		for i := range 5 {
			join(f, shard.Options{Identity: fmt.Sprint("dead-", i)}, dead.wrap)
		}
		var hanging atomic.Bool
		hanging.Store(true)
		b := join(f, shard.Options{Identity: "b"}, func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodDelete && hanging.Load() {
					<-r.Context().Done()
					return nil, context.Cause(r.Context())
				}
				return next.RoundTrip(r)
			})
		})
		<-time.After(20 * time.Second)
		require.Len(t, b.Status().Members, 6)
		defer dead.stop()()
		for range 60 {
			<-time.After(time.Second)
			require.Greater(t, time.Until(b.Status().Deadline), 4*time.Second, "there is time for another renewal")
		}
		require.Zero(t, b.Status().Lost)
		hanging.Store(false)
		<-time.After(10 * time.Second)
		requireDivided(t, b)
	})
}

// TestDeletesAreRefused forbids a member to delete the Lease of a dead one.
func TestDeletesAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		a := join(f, shard.Options{Identity: "a"}, l.wrap)
		var forbidden atomic.Bool
		forbidden.Store(true)
		b := join(f, shard.Options{Identity: "b"}, func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodDelete || !forbidden.Load() {
					return next.RoundTrip(r)
				}
				return &http.Response{
					StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1,
				}, nil
			})
		})
		<-time.After(10 * time.Second)
		requireDivided(t, a, b)
		lease := a.Status().Lease
		defer l.stop()()
		<-time.After(20 * time.Second)
		for range 20 {
			<-time.After(time.Second)
			require.ErrorContains(t, b.Status().Err, "cannot delete the expired lease "+lease)
		}
		require.Zero(t, b.Status().Lost)
		forbidden.Store(false)
		<-time.After(10 * time.Second)
		requireDivided(t, b)
		require.NoError(t, b.Status().Err)
	})
}

// TestALateRenewalWins renews a Lease in the moment in which another replica deletes it as expired.
func TestALateRenewalWins(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		l := &line{}
		a := join(f, shard.Options{Identity: "a"}, l.wrap)
		<-time.After(5 * time.Second)
		defer l.stop()()
		deletes := 0
		b := join(f, shard.Options{Identity: "b"}, func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodDelete && deletes == 0 {
					deletes++
					f.Edit(leases, api.Key{Namespace: "default", Name: a.Status().Lease}, func(u *unstructured.Unstructured) {
						u.Object["spec"].(map[string]any)["renewTime"] = "2026-01-02T03:04:05.000000Z"
					})
				}
				return next.RoundTrip(r)
			})
		})
		<-time.After(20 * time.Second)
		require.Equal(t, 1, deletes)
		require.True(t, b.Status().Held.Empty())
		require.Len(t, b.Status().Members, 2)
		<-time.After(20 * time.Second)
		requireDivided(t, b)
	})
}

// TestOtherRules starts a replica that hashes another field.
func TestOtherRules(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		core, logs := observer.New(zapcore.ErrorLevel)
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		b := join(f, shard.Options{Identity: "b", Field: hashrange.Namespace, Logger: zap.New(core)}, nil)
		<-time.After(time.Minute)
		require.Equal(t, 1.0, a.Status().Held.Share(), "the group goes on")
		require.NoError(t, a.Status().Err)
		require.ErrorIs(t, b.NotSynced(), shard.ErrRules)
		require.ErrorContains(t, b.NotSynced(), `a (Lease default/mill-`)
		require.ErrorContains(t, b.NotSynced(), `has "fnv1a-64 cut-1 object.metadata.uid", and this replica has "fnv1a-64 cut-1 object.metadata.namespace"`)
		require.Equal(t, 1, logs.Len(), "one error: %v", logs.All())
		a.end()
		<-time.After(10 * time.Second)
		requireDivided(t, b)
		require.NoError(t, b.NotSynced())
	})
}

// TestOtherRulesAtOnce starts replicas with different rules at the same moment. Only those with one of the rules may
// hold ranges at a time.
func TestOtherRulesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		b := join(f, shard.Options{Identity: "b", Field: hashrange.Namespace}, nil)
		for range 120 {
			<-time.After(500 * time.Millisecond)
			require.True(t, a.Status().Held.Empty() || b.Status().Held.Empty())
		}
		require.Equal(t, 1.0, a.Status().Held.Share()+b.Status().Held.Share())
	})
}

// TestALeaseIsDeleted deletes the Lease of a healthy member.
func TestALeaseIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		ctx, end := begin(t, a, 1)
		f.Delete(leases, api.Key{Namespace: "default", Name: a.Status().Lease})
		<-time.After(3 * time.Second)
		require.ErrorIs(t, context.Cause(ctx), shard.ErrLost)
		end()
		<-time.After(5 * time.Second)
		requireDivided(t, a)
	})
}

// TestAnotherVersion starts a replica beside one of a version that divides the hashes in another way. It waits, says
// why once, and joins when the other one is gone.
func TestAnotherVersion(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		identity, duration := "old", int32(60)
		f.Create(leases, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mill-old", Labels: map[string]string{"leatproject.github.io/shard-group": "mill"}, Annotations: map[string]string{
				"leatproject.github.io/shard-claims": hashrange.All().String(),
				"leatproject.github.io/shard-rules":  "fnv1a-64 cut-0 object.metadata.uid",
			}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &duration},
		})
		core, logs := observer.New(zapcore.ErrorLevel)
		a := join(f, shard.Options{Identity: "a", Logger: zap.New(core)}, nil)
		<-time.After(50 * time.Second)
		require.EqualError(t, a.Status().Err, `shard: the group has members with other rules: old (Lease default/mill-old) has `+
			`"fnv1a-64 cut-0 object.metadata.uid", and this replica has "fnv1a-64 cut-1 object.metadata.uid"; `+
			`it takes no ranges until that Lease is gone`)
		require.Equal(t, 1, logs.Len(), "one error: %v", logs.All())
		require.NoError(t, a.Ready(t.Context()))
		<-time.After(20 * time.Second)
		requireDivided(t, a)
	})
}

// TestAnUnreadableLease adds a Lease whose claims cannot be read. It counts as one that claims everything.
func TestAnUnreadableLease(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"leaseDurationSeconds": int64(30)}}}
		o.SetName("mill-other")
		o.SetNamespace("default")
		o.SetLabels(map[string]string{"leatproject.github.io/shard-group": "mill"})
		o.SetAnnotations(map[string]string{
			"leatproject.github.io/shard-claims": "everything",
			"leatproject.github.io/shard-rules":  "fnv1a-64 cut-1 object.metadata.uid",
		})
		f.Create(leases, o)
		core, logs := observer.New(zapcore.ErrorLevel)
		a := join(f, shard.Options{Identity: "a", Logger: zap.New(core)}, nil)
		<-time.After(5 * time.Second)
		for range 20 {
			<-time.After(time.Second)
			require.ErrorContains(t, a.Status().Err, "the annotation leatproject.github.io/shard-claims of the Lease mill-other")
		}
		require.Equal(t, 1, logs.Len(), "one error: %v", logs.All())
		require.True(t, a.Status().Held.Empty())
		require.Equal(t, 0.5, a.Status().Target.Share())
		<-time.After(10 * time.Second)
		requireDivided(t, a)
		require.NoError(t, a.Status().Err)
	})
}

// TestALeaseForYearsEnds adds a Lease that claims everything for 68 years and is never renewed.
func TestALeaseForYearsEnds(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"leaseDurationSeconds": int64(math.MaxInt32)}}}
		o.SetName("mill-other")
		o.SetNamespace("default")
		o.SetLabels(map[string]string{"leatproject.github.io/shard-group": "mill"})
		o.SetAnnotations(map[string]string{
			"leatproject.github.io/shard-claims": hashrange.All().String(),
			"leatproject.github.io/shard-rules":  "fnv1a-64 cut-1 object.metadata.uid",
		})
		f.Create(leases, o)
		core, logs := observer.New(zapcore.ErrorLevel)
		a := join(f, shard.Options{
			Identity: "a", Logger: zap.New(core), LeaseDuration: 5 * time.Minute, RenewDeadline: 3 * time.Minute, RetryPeriod: time.Minute,
		}, nil)
		<-time.After(59 * time.Minute)
		require.True(t, a.Status().Held.Empty())
		require.ErrorContains(t, a.Status().Err, "the Lease mill-other has the duration 596523h14m7s")
		<-time.After(5 * time.Minute)
		requireDivided(t, a)
		require.NoError(t, a.Status().Err)
		require.Equal(t, 1, logs.Len(), "one error: %v", logs.All())
	})
}

// TestTheLeaseIsKept keeps what others wrote into the Lease.
func TestTheLeaseIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		name := api.Key{Namespace: "default", Name: a.Status().Lease}
		f.Edit(leases, name, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			annotations["mine"] = "stays"
			u.SetAnnotations(annotations)
		})
		<-time.After(10 * time.Second)
		u := must.Get(f.Server.Get(leases, name))(t)
		require.Equal(t, "stays", u.GetAnnotations()["mine"])
		requireDivided(t, a)
		require.Zero(t, a.Status().Lost)
	})
}

// TestRunEnds ends a replica whose server does not answer any more, one that never got an answer, and one that does not
// know that the server has created its Lease.
func TestRunEnds(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		var cut atomic.Bool
		silent := func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if cut.Load() {
					<-r.Context().Done()
					return nil, context.Cause(r.Context())
				}
				return next.RoundTrip(r)
			})
		}
		a := join(f, shard.Options{Identity: "a"}, silent)
		<-time.After(5 * time.Second)
		cut.Store(true)
		deadline := a.Status().Deadline
		a.end()
		require.LessOrEqual(t, time.Until(deadline), time.Duration(0), "it tries to leave until its deadline")
		require.LessOrEqual(t, time.Since(deadline), 10*time.Second/3)
		require.Error(t, a.Run(t.Context()), "a Member runs once")

		never := join(f, shard.Options{Identity: "never"}, silent)
		<-time.After(5 * time.Second)
		require.ErrorContains(t, never.NotSynced(), "cannot list the group")
		began := time.Now()
		never.end()
		require.LessOrEqual(t, time.Since(began), 10*time.Second/3)

		unaware := join(f, shard.Options{Identity: "unaware"}, func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(r)
				if err == nil && r.Method == http.MethodPost {
					return nil, errors.Join(errors.New("the answer is lost"), answer.Body.Close())
				}
				return answer, err
			})
		})
		<-time.After(time.Second)
		require.Error(t, unaware.NotSynced())
		all := must.Get(f.Server.List(leases, "default"))(t)
		require.Len(t, all, 2, "that of a, which could not delete it, and the new one")
		unaware.end()
		all = must.Get(f.Server.List(leases, "default"))(t)
		require.Len(t, all, 1)
	})
}

func TestOptions(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://localhost"}))(t)
	for _, tc := range []struct {
		o    shard.Options
		text string
	}{
		{shard.Options{Group: "a"}, "Namespace is empty"},
		{shard.Options{Namespace: "a"}, "Group is empty"},
		{shard.Options{Namespace: "a", Group: "A/b"}, `Group is "A/b": it must be a DNS name`},
		{shard.Options{Namespace: "a", Group: "a-"}, `Group is "a-"`},
		{shard.Options{Namespace: "a", Group: "a..b"}, `Group is "a..b"`},
		{shard.Options{Namespace: "a", Group: "a.-b"}, `Group is "a.-b"`},
		{shard.Options{Namespace: "a", Group: "a-.b"}, `Group is "a-.b"`},
		{shard.Options{Namespace: "a", Group: ".a"}, `Group is ".a"`},
		{shard.Options{Namespace: "a", Group: "a", Field: "metadata.name"}, `Field is "metadata.name": it must be "object.metadata.uid"`},
		{shard.Options{Namespace: "a", Group: "a", LeaseDuration: 1500 * time.Millisecond}, "LeaseDuration is 1.5s"},
		{shard.Options{Namespace: "a", Group: "a", LeaseDuration: time.Hour + time.Second}, "LeaseDuration is 1h0m1s"},
		{shard.Options{Namespace: "a", Group: "a", RenewDeadline: 15 * time.Second}, "RenewDeadline is 15s"},
		{shard.Options{Namespace: "a", Group: "a", RetryPeriod: -1}, "RetryPeriod is -1ns"},
		{shard.Options{Namespace: "a", Group: "a", RetryPeriod: 4 * time.Second}, "RenewDeadline is 10s: it must be at least three times RetryPeriod, 4s"},
	} {
		require.ErrorContains(t, must.Err(shard.New(client, tc.o)), "shard: Options."+tc.text)
	}
	must.Get(shard.New(client, shard.Options{Namespace: "a", Group: "mill-2.b"}))(t)
}

// TestEndWaitsForWork ends a replica that is at work.
func TestEndWaitsForWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		a := join(f, shard.Options{Identity: "a"}, nil)
		<-time.After(5 * time.Second)
		b := join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(10 * time.Second)
		hash := a.Status().Held[0].From
		ctx, end := begin(t, a, hash)
		a.cancel()
		<-time.After(time.Minute)
		require.NoError(t, ctx.Err())
		_, _, ok := b.Begin(t.Context(), hash)
		require.False(t, ok, "the work has not ended")
		end()
		<-time.After(5 * time.Second)
		requireDivided(t, b)
	})
}
