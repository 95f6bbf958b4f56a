package leaderelection_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestNewReportsAllInvalidOptions(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://h"}))(t)
	_, err := leaderelection.New(client, leaderelection.Options{
		LeaseDuration: 1500 * time.Millisecond, RenewDeadline: 2 * time.Second, RetryPeriod: -1,
	})
	for _, says := range []string{"Namespace is empty", "Name is empty", "whole number of seconds", "shorter than LeaseDuration", "RetryPeriod is -1ns"} {
		require.ErrorContains(t, err, says)
	}
	_, err = leaderelection.New(client, leaderelection.Options{Namespace: "a", Name: "b", RetryPeriod: 9 * time.Second})
	require.ErrorContains(t, err, "longer than 1.2 times RetryPeriod")
	for text, o := range map[string]leaderelection.Options{ // values just outside of the allowed range
		"positive, and at most 1h0m0s":      {LeaseDuration: time.Hour + time.Second},
		"a whole number of seconds":         {LeaseDuration: -time.Second, RenewDeadline: -2 * time.Second},
		"shorter than LeaseDuration, 10s":   {LeaseDuration: 10 * time.Second},
		"longer than 1.2 times RetryPeriod": {RenewDeadline: 6 * time.Second, RetryPeriod: 5 * time.Second},
	} {
		o.Namespace, o.Name = "a", "b"
		require.ErrorContains(t, must.Err(leaderelection.New(client, o)), text)
	}
	must.Get(leaderelection.New(client, leaderelection.Options{
		Namespace: "a", Name: "b", LeaseDuration: time.Second, RenewDeadline: 500 * time.Millisecond, RetryPeriod: 100 * time.Millisecond,
	}))(t)
	one := must.Get(leaderelection.New(client, leaderelection.Options{Namespace: "a", Name: "b"}))(t)
	two := must.Get(leaderelection.New(client, leaderelection.Options{Namespace: "a", Name: "b"}))(t)
	require.NotEqual(t, one.Identity(), two.Identity())
	host := must.Get(os.Hostname())(t)
	require.Regexp(t, "^"+regexp.QuoteMeta(host)+"_[a-z0-9]{26}$", one.Identity())
}

// TestNamespaceOfThePod has a program that sets no namespace and runs in a pod.
func TestNamespaceOfThePod(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		t.Setenv("POD_NAMESPACE", leaseKey.Namespace)
		client := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}))(t)
		defer client.CloseIdleConnections()
		e := must.Get(leaderelection.New(client, leaderelection.Options{Name: leaseKey.Name, Identity: "a"}))(t)
		require.NoError(t, e.Run(t.Context(), func(context.Context) error {
			require.Equal(t, "a", *lease(t, s).Spec.HolderIdentity)
			return nil
		}))
	})
}

func TestLeaseIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		mill := map[string]string{"app": "mill"}
		a := campaign(t, s, leaderelection.Options{Identity: "a", Labels: mill}, 0, nil)
		<-a.Elected()
		require.True(t, a.Leading())
		require.Equal(t, "a", a.Leader())
		l := lease(t, s)
		require.Equal(t, mill, l.Labels)
		require.Equal(t, "a", *l.Spec.HolderIdentity)
		require.Equal(t, int32(15), *l.Spec.LeaseDurationSeconds)
		require.Zero(t, *l.Spec.LeaseTransitions)
		acquired := l.Spec.AcquireTime

		_, err := s.Edit(leases, leaseKey, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"team": "mill"})
			u.Object["spec"].(map[string]any)["preferredHolder"] = "z"
		})
		require.NoError(t, err)
		before := time.Now()
		<-time.After(7 * time.Second)
		l = lease(t, s)
		require.Equal(t, map[string]string{"team": "mill", "app": "mill"}, l.Labels)
		require.Equal(t, "z", *l.Spec.PreferredHolder)
		require.True(t, l.Spec.RenewTime.After(before.Add(5*time.Second)), "the lease must still be renewed")
		require.Equal(t, acquired.Unix(), l.Spec.AcquireTime.Unix())
		require.True(t, a.Leading(), "a write to another field must not end the lease")

		require.NoError(t, s.Delete(leases, leaseKey))
		<-time.After(3 * time.Second)
		require.Equal(t, "a", *lease(t, s).Spec.HolderIdentity, "a deleted lease must be created again")
		require.True(t, a.Leading())
		require.NoError(t, a.end())
	})
}

// TestReleaseAfterTheLastWorker ends a leader whose work takes a minute to end, while another replica waits.
func TestReleaseAfterTheLastWorker(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, time.Minute, nil)
		<-a.Elected()
		b := campaign(t, s, leaderelection.Options{Identity: "b"}, 0, nil)
		<-time.After(time.Minute)
		require.Equal(t, "a", b.Leader())
		require.NoError(t, a.end())
		_, over := a.led()
		require.Equal(t, context.Canceled, a.cause)
		<-b.Elected()
		began, _ := b.led()
		require.False(t, began.Before(over), "two replicas lead at once")
		require.Less(t, began.Sub(over), 5*time.Second)
		l := lease(t, s)
		require.Equal(t, "b", *l.Spec.HolderIdentity)
		require.Equal(t, int32(1), *l.Spec.LeaseTransitions)
		require.NoError(t, b.end())
		require.Empty(t, *lease(t, s).Spec.HolderIdentity)
		require.Equal(t, int32(1), *lease(t, s).Spec.LeaseDurationSeconds)
		require.Empty(t, b.Leader())
	})
}

func TestHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a", KeepLease: true}, 0, nil)
		<-a.Elected()
		b := campaign(t, s, leaderelection.Options{Identity: "b"}, 0, nil)
		<-time.After(20 * time.Second)
		require.NoError(t, a.end())
		require.Equal(t, "a", *lease(t, s).Spec.HolderIdentity, "the lease must not be released")
		_, over := a.led()
		<-b.Elected()
		began, _ := b.led()
		require.Greater(t, began.Sub(over), 10*time.Second)
		require.Less(t, began.Sub(over), 15*time.Second+4400*time.Millisecond)
	})
}

func TestDeadLeaderIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		line := &cut{}
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, line.on)
		<-a.Elected()
		b := campaign(t, s, leaderelection.Options{Identity: "b"}, 0, nil)
		<-time.After(5 * time.Second)
		line.set(true)
		died := time.Now()
		<-b.Elected()
		began, _ := b.led()
		require.LessOrEqual(t, began.Sub(died), 15*time.Second+4400*time.Millisecond)
		_, over := a.led()
		require.False(t, over.IsZero(), "two replicas lead at once")
		require.False(t, began.Before(over))
		require.ErrorIs(t, a.end(), leaderelection.ErrLost)
	})
}

// TestALeaseForYearsEnds has a holder that writes a lease for 68 years and is never seen again.
func TestALeaseForYearsEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a", KeepLease: true}, 0, nil)
		<-a.Elected()
		require.NoError(t, a.end())
		edit(t, s, func(spec map[string]any) { spec["leaseDurationSeconds"] = int64(math.MaxInt32) })
		core, logs := observer.New(zapcore.ErrorLevel)
		b := campaign(t, s, leaderelection.Options{Identity: "b", Logger: zap.New(core)}, 0, nil)
		<-time.After(59 * time.Minute)
		began, _ := b.led()
		require.Zero(t, began)
		require.Equal(t, 1, logs.FilterMessageSnippet("valid for too long").Len())
		<-b.Elected()
		require.Equal(t, time.Hour, time.Since(b.created), "the lease counts as one of an hour")
		require.EqualValues(t, 15, *lease(t, s).Spec.LeaseDurationSeconds)
	})
}

// TestLostLease disconnects a leader and checks when it stops leading and how its Run ends.
func TestLostLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		line := &cut{}
		var calls []bool
		a := campaign(t, s, leaderelection.Options{Identity: "a", OnLeading: func(l bool) { calls = append(calls, l) }}, time.Second, line.on)
		<-a.Elected()
		<-time.After(4*time.Second + time.Millisecond) // the last renewal is a millisecond old
		line.set(true)
		<-time.After(9 * time.Second)
		require.True(t, a.Leading())
		require.NoError(t, a.Check(0))
		err := <-a.ended
		a.ended <- err
		require.ErrorIs(t, err, leaderelection.ErrLost)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the cause must be in the error")
		require.ErrorContains(t, err, "default/mill could not be renewed for 10s: ")
		require.ErrorIs(t, a.cause, leaderelection.ErrLost)
		began, over := a.led()
		require.Equal(t, 14*time.Second+time.Second, over.Sub(began), "4 s of renewals, 10 s until the deadline, 1 s until the work ended")
		require.False(t, a.Leading())
		require.Equal(t, []bool{true, false}, calls)
	})
}

func TestLeaderThatDoesNotEndIsUnhealthy(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		line := &cut{}
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, time.Minute, line.on)
		require.NoError(t, a.Check(0), "a replica that does not lead is healthy")
		<-a.Elected()
		line.set(true)
		<-time.After(35 * time.Second)
		require.NoError(t, a.Check(20*time.Second))
		<-time.After(time.Second)
		require.ErrorContains(t, a.Check(20*time.Second), "last renewed the lease 36s ago")
	})
}

// TestLeadingReadsTheClock blocks a leader so that it cannot notice that its deadline has passed.
func TestLeadingReadsTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a", OnSlowPath: func() { <-time.After(12 * time.Second) }}, 0, nil)
		<-a.Elected()
		renewed := time.Now()
		edit(t, s, func(spec map[string]any) { spec["preferredHolder"] = "z" }) // the leader must read the lease before it can renew it
		<-time.After(time.Until(renewed.Add(10*time.Second - time.Millisecond)))
		require.True(t, a.Leading())
		<-time.After(time.Millisecond)
		require.False(t, a.Leading())
		_, over := a.led()
		require.Zero(t, over, "the leader must still be blocked")
		require.ErrorIs(t, <-a.ended, leaderelection.ErrLost)
		a.ended <- nil
	})
}

// TestAttemptsHaveADeadline disconnects a candidate. The time that it waits for an answer depends on RenewDeadline.
func TestAttemptsHaveADeadline(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{10 * time.Second: 5 * time.Second, 1500 * time.Millisecond: time.Second} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			took := make(chan time.Duration)
			hang := func(http.RoundTripper) http.RoundTripper {
				return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					began := time.Now()
					<-r.Context().Done()
					took <- time.Since(began)
					return nil, r.Context().Err()
				})
			}
			a := campaign(t, s, leaderelection.Options{Identity: "a", RenewDeadline: deadline, RetryPeriod: time.Second}, 0, hang)
			require.Equal(t, want, <-took)
			a.stop()
			select {
			case <-took: // the next attempt, if there was time for one
			case err := <-a.ended:
				a.ended <- err
			}
		})
	}
}

func TestLeaseTakenByAnother(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		slow := 0
		a := campaign(t, s, leaderelection.Options{Identity: "a", OnSlowPath: func() { slow++ }}, time.Minute, nil)
		<-a.Elected()
		edit(t, s, func(spec map[string]any) { spec["holderIdentity"] = "thief" })
		require.True(t, a.Leading())
		<-time.After(2*time.Second + time.Millisecond)
		require.False(t, a.Leading(), "the work still runs, but the replica does not lead")
		began := time.Now()
		err := <-a.ended
		a.ended <- err
		require.ErrorIs(t, err, leaderelection.ErrLost)
		require.EqualError(t, err, `leaderelection: the lease is lost: "thief" holds default/mill`)
		require.Equal(t, time.Minute-time.Millisecond, time.Since(began))
		require.Equal(t, 1, slow)
		require.Equal(t, "thief", *lease(t, s).Spec.HolderIdentity, "the lease of another replica must not be released")
	})
}

// TestClocksAreNotCompared has a lease with wrong times that is renewed now and then.
func TestClocksAreNotCompared(t *testing.T) {
	for name, at := range map[string]string{"past": "1970-01-01T00:00:00.000000Z", "future": "2190-01-01T00:00:00.000000Z"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *testserver.Server) {
				must.Get(s.Create(leases, map[string]any{
					"metadata": map[string]any{"namespace": leaseKey.Namespace, "name": leaseKey.Name},
					"spec":     map[string]any{"holderIdentity": "other", "leaseDurationSeconds": int64(30), "renewTime": at},
				}))(t)
				var leaders []string
				a := campaign(t, s, leaderelection.Options{Identity: "a", OnLeader: func(l string) { leaders = append(leaders, l) }}, 0, nil)
				for range 5 {
					<-time.After(25 * time.Second)
					require.False(t, a.Leading())
					_, err := s.Edit(leases, leaseKey, func(u *unstructured.Unstructured) {
						u.SetAnnotations(map[string]string{"at": time.Now().String()})
					})
					require.NoError(t, err)
				}
				last := time.Now()
				<-a.Elected()
				require.GreaterOrEqual(t, time.Since(last), 30*time.Second, "the duration in the lease must not count")
				require.Less(t, time.Since(last), 40*time.Second)
				require.Equal(t, []string{"other", "a"}, leaders)
			})
		})
	}
}

// TestNeverTwoLeaders starts, ends, kills and disconnects five replicas for hours, and compares the times at which they
// led.
func TestNeverTwoLeaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		var all []*replica
		lines := map[*replica]*cut{}
		start := func(i int) *replica {
			line := &cut{}
			r := campaign(t, s, leaderelection.Options{}, time.Duration(i%4)*time.Second, line.on)
			all, lines[r] = append(all, r), line
			return r
		}
		var running []*replica
		for i := range 5 {
			running = append(running, start(i))
		}
		for round := range 60 {
			<-time.After(time.Duration(7+round%40) * time.Second)
			at := round % len(running)
			if round%3 == 0 { // the leader, instead of a random replica
				for i, r := range running {
					if r.Leading() {
						at = i
					}
				}
			}
			r := running[at]
			if round%2 == 0 {
				lines[r].set(true)
				<-time.After(time.Duration(round%20) * time.Second)
				lines[r].set(false)
			}
			if err := r.end(); err != nil {
				require.ErrorIs(t, err, leaderelection.ErrLost)
			}
			running[at] = start(round)
		}
		for _, r := range running {
			_ = r.end()
		}
		terms := 0
		for i, a := range all {
			began, over := a.led()
			if began.IsZero() {
				continue
			}
			terms++
			for _, b := range all[:i] {
				otherBegan, otherOver := b.led()
				require.True(t, otherBegan.IsZero() || !began.Before(otherOver) || !otherBegan.Before(over),
					"one led from %v to %v, another from %v to %v", began, over, otherBegan, otherOver)
			}
		}
		require.Greater(t, terms, 15)
	})
}

func TestRunEndsInEveryState(t *testing.T) {
	t.Run("another leads", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
			<-a.Elected()
			b := campaign(t, s, leaderelection.Options{Identity: "b"}, 0, nil)
			<-time.After(time.Second)
			began := time.Now()
			require.NoError(t, b.end())
			require.Zero(t, time.Since(began))
			led, _ := b.led()
			require.Zero(t, led)
		})
	})
	t.Run("in mid-request", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			line := &cut{closed: true}
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, line.on)
			synctest.Wait()
			began := time.Now()
			require.NoError(t, a.end())
			require.Zero(t, time.Since(began))
		})
	})
	t.Run("leading, in mid-renewal", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			line := &cut{}
			a := campaign(t, s, leaderelection.Options{Identity: "a", KeepLease: true}, 0, line.on)
			<-a.Elected()
			line.set(true)
			<-time.After(3 * time.Second)
			began := time.Now()
			require.NoError(t, a.end())
			require.Zero(t, time.Since(began))
		})
	})
	t.Run("a release that hangs", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			line := &cut{}
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, line.on)
			<-a.Elected()
			line.set(true)
			began := time.Now()
			require.NoError(t, a.end())
			require.Equal(t, leaderelection.DefaultRenewDeadline, time.Since(began))
			require.Equal(t, "a", a.Leader(), "the lease has not been released")
			require.False(t, a.Leading(), "the work has ended")
		})
	})
}

func TestWorkMayEndByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		client := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}))(t)
		broken := errors.New("broken")
		for _, want := range []error{nil, broken} {
			e := must.Get(leaderelection.New(client, leaderelection.Options{Namespace: leaseKey.Namespace, Name: leaseKey.Name}))(t)
			require.Equal(t, want, e.Run(t.Context(), func(context.Context) error { return want }))
			require.Empty(t, *lease(t, s).Spec.HolderIdentity)
			require.ErrorContains(t, e.Run(t.Context(), nil), "called before")
		}
		client.CloseIdleConnections()
	})
}

// TestLastError has a leader whose renewals fail for a while, and a follower, whose attempts succeed.
func TestLastError(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		<-a.Elected()
		b := campaign(t, s, leaderelection.Options{Identity: "b"}, 0, nil)
		<-time.After(5 * time.Second)
		require.NoError(t, a.LastError())
		require.NoError(t, b.LastError(), "another replica leads")
		refused := s.Inject(faults.Fault{
			Match: faults.Match{Resource: "leases.coordination.k8s.io"}, Effect: faults.Fail{Code: http.StatusForbidden},
		})
		<-time.After(5 * time.Second)
		require.True(t, a.Leading(), "there is time for another attempt")
		require.ErrorContains(t, a.LastError(), "a fault was injected")
		refused.Remove()
		<-time.After(3 * time.Second)
		require.NoError(t, a.LastError())
		require.NoError(t, errors.Join(b.end(), a.end()))
	})
}

func TestConflictsOfARelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		<-a.Elected()
		must.Get(s.Edit(leases, leaseKey, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"team": "mill"}) }))(t)
		require.NoError(t, a.end())
		l := lease(t, s)
		require.Empty(t, *l.Spec.HolderIdentity)
		require.Equal(t, map[string]string{"team": "mill"}, l.Labels)
	})
}

func (c *cut) on(r http.RoundTripper) http.RoundTripper {
	c.RoundTripper = r
	return c
}

// TestRenewDeadlineIsExact has a leader whose deadline is between two attempts. It checks the first deadline, and one
// that a renewal has set.
func TestRenewDeadlineIsExact(t *testing.T) {
	for renewed, want := range map[time.Duration]time.Duration{0: 14 * time.Second, 10 * time.Second: 24 * time.Second} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			var down atomic.Bool
			refused := errors.New("refused")
			refuse := func(next http.RoundTripper) http.RoundTripper {
				return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if down.Load() {
						return nil, refused
					}
					return next.RoundTrip(r)
				})
			}
			o := leaderelection.Options{Identity: "a", LeaseDuration: 15 * time.Second, RenewDeadline: 14 * time.Second, RetryPeriod: 10 * time.Second}
			a := campaign(t, s, o, 0, refuse)
			<-a.Elected()
			<-time.After(renewed)
			synctest.Wait()
			down.Store(true)
			err := <-a.ended
			a.ended <- err
			require.ErrorIs(t, err, leaderelection.ErrLost)
			require.ErrorIs(t, err, refused, "the cause must be in the error")
			began, over := a.led()
			require.Equal(t, want, over.Sub(began))
		})
	}
}

// TestSlowAnswersDoNotLengthenTheLease has a server that writes at once and answers three seconds later. Other replicas
// count the lease from the write, so the leader must count from its request. A leader that counted from the answer
// would lead at the same time as the next one. The connection is cut after the first write, and after the first
// renewal.
func TestSlowAnswersDoNotLengthenTheLease(t *testing.T) {
	const late = 3 * time.Second
	for _, passes := range []time.Duration{0, late} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			line := &cut{}
			slow := func(next http.RoundTripper) http.RoundTripper {
				line.on(next)
				return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					answer, err := line.RoundTrip(r)
					if err == nil && r.Method != http.MethodGet {
						<-time.After(late)
					}
					return answer, err
				})
			}
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, slow)
			<-a.Elected()
			require.Equal(t, late, time.Since(lease(t, s).Spec.RenewTime.Time))
			<-time.After(passes)
			line.set(true)
			written := lease(t, s).Spec.RenewTime.Time
			<-time.After(time.Until(written.Add(leaderelection.DefaultRenewDeadline - time.Millisecond)))
			require.True(t, a.Leading())
			<-time.After(time.Millisecond)
			require.False(t, a.Leading())
			_, over := a.led()
			require.Equal(t, leaderelection.DefaultRenewDeadline, over.Sub(written))
			require.ErrorIs(t, a.end(), leaderelection.ErrLost)
		})
	}
}

// TestLeaseTakenDuringRenewal has another replica take the lease between the leader's read and its write. The leader
// must notice at once, although it read its own lease.
func TestLeaseTakenDuringRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		var writes atomic.Int32
		interfere := func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPut {
					switch writes.Add(1) {
					case 1: // so the leader must read
						edit(t, s, func(spec map[string]any) { spec["preferredHolder"] = "z" })
					case 2:
						edit(t, s, func(spec map[string]any) { spec["holderIdentity"] = "thief" })
					}
				}
				return next.RoundTrip(r)
			})
		}
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, interfere)
		<-a.Elected()
		<-time.After(2*time.Second + time.Millisecond)
		require.False(t, a.Leading(), "two replicas lead at once")
		_, over := a.led()
		require.Equal(t, time.Millisecond, time.Since(over))
		require.EqualError(t, a.end(), `leaderelection: the lease is lost: "thief" holds default/mill`)
		require.Equal(t, int32(2), writes.Load())
	})
}
