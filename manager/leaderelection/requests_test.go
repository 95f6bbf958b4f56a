package leaderelection_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

const leaseResource = "leases.coordination.k8s.io"

// requests returns the verbs of the requests since the last call.
func requests(s *testserver.Server) (verbs []string) {
	for _, r := range s.Requests() {
		verbs = append(verbs, r.Verb)
	}
	s.ForgetRequests()
	return verbs
}

// fail lets the next requests with a verb fail.
func fail(s *testserver.Server, verb string, times, code int) *testserver.Injection {
	return s.Inject(faults.Fault{
		Match: faults.Match{Resource: leaseResource, Verbs: []string{verb}}, Times: times, Effect: faults.Fail{Code: code},
	})
}

// createLease creates a lease of another program.
func createLease(t *testing.T, s *testserver.Server, spec map[string]any) {
	t.Helper()
	_, err := s.Create(leases, map[string]any{
		"metadata": map[string]any{"namespace": leaseKey.Namespace, "name": leaseKey.Name}, "spec": spec,
	})
	require.NoError(t, err)
}

var heldByOther = map[string]any{"holderIdentity": "other", "leaseDurationSeconds": int64(15)}

// TestTimesOfACandidatesRequests checks when a candidate reads a lease that another replica holds: after RetryPeriod
// plus up to 1.2 × RetryPeriod, and at the moment when the lease expires.
func TestTimesOfACandidatesRequests(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		createLease(t, s, heldByOther)
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		for range 50 {
			<-time.After(5 * time.Second)
			_, err := s.Edit(leases, leaseKey, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"at": time.Now().String()})
			})
			require.NoError(t, err)
		}
		asked := s.Requests()
		distinct := map[time.Duration]bool{}
		for i := range asked[1:] {
			pause := asked[i+1].At.Sub(asked[i].At)
			require.GreaterOrEqual(t, pause, 2*time.Second)
			require.LessOrEqual(t, pause, 4400*time.Millisecond)
			distinct[pause] = true
		}
		require.Greater(t, len(distinct), 10, "the pauses must differ")

		<-time.After(10 * time.Second)
		asked = s.Requests()
		// The first request after the last change observes it. The change is 15 seconds old when the lease expires.
		seen := asked[slices.IndexFunc(asked, func(r testserver.Request) bool { return !r.At.Before(a.created.Add(250 * time.Second)) })].At
		<-a.Elected()
		require.Equal(t, 15*time.Second, time.Since(seen))
	})
}

// TestNumberOfRequests checks that a renewal is one request, also after failures.
func TestNumberOfRequests(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		slow := 0
		a := campaign(t, s, leaderelection.Options{Identity: "a", OnSlowPath: func() { slow++ }}, 0, nil)
		<-a.Elected()
		require.Equal(t, []string{"get", "create"}, requests(s))
		fail(s, "update", 1, http.StatusInternalServerError)
		<-time.After(2*time.Second + time.Millisecond)
		require.Equal(t, []string{"update"}, requests(s))
		require.Zero(t, slow)
		<-time.After(2 * time.Second)
		require.Equal(t, []string{"update"}, requests(s))

		fail(s, "update", 1, http.StatusNotFound) // as from a server that does not create objects by updates
		require.NoError(t, s.Delete(leases, leaseKey))
		<-time.After(2 * time.Second)
		require.Equal(t, []string{"update", "get", "create"}, requests(s))
		require.Equal(t, 1, slow)
		require.True(t, a.Leading())
	})
}

// TestLeaderWhoseSlowPathFails has a leader whose renewal conflicts, and that then fails to read the lease. It must
// continue to lead.
func TestLeaderWhoseSlowPathFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		<-a.Elected()
		s.ForgetRequests()
		for _, row := range []struct{ conflicts, read int }{
			{1, 1}, // the read before the second write fails
			{2, 2}, // the second write conflicts too, and the read after it fails
			{2, 3}, // the read after it succeeds: the lease was not taken
		} {
			fail(s, "update", row.conflicts, http.StatusConflict)
			s.Inject(faults.Fault{
				Match: faults.Match{Resource: leaseResource, Verbs: []string{"get"}}, Skip: row.read - 1, Times: 1,
				Effect: faults.Fail{},
			})
			<-time.After(2*time.Second + time.Microsecond)
			require.Equal(t, []string{"update", "get", "update", "get"}[:2*row.conflicts], requests(s))
			require.True(t, a.Leading())
			<-time.After(2 * time.Second)
			require.Equal(t, []string{"update"}, requests(s))
			s.Heal()
		}
		require.NoError(t, a.end())
	})
}

// TestCandidateWhoseWriteFails checks that such a candidate does not lead, whether the lease exists or not.
func TestCandidateWhoseWriteFails(t *testing.T) {
	for verb, prepare := range map[string]func(t *testing.T, s *testserver.Server){
		"create": func(*testing.T, *testserver.Server) {},
		"update": func(t *testing.T, s *testserver.Server) { createLease(t, s, map[string]any{}) },
	} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			prepare(t, s)
			fail(s, verb, 1, http.StatusInternalServerError)
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
			synctest.Wait()
			require.Equal(t, []string{"get", verb}, requests(s))
			require.False(t, a.Leading())
			began := time.Now()
			<-a.Elected()
			require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
		})
	}
}

// TestLeaseWithoutADurationExpires checks that such a lease expires after the LeaseDuration of the candidate.
func TestLeaseWithoutADurationExpires(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		createLease(t, s, map[string]any{"holderIdentity": "other"})
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		began := time.Now()
		<-a.Elected()
		require.Equal(t, leaderelection.DefaultLeaseDuration, time.Since(began))
	})
}

// TestAttemptOfALeaderEndsWithItsDeadline has a server that rejects a leader's requests for a while and then does not
// answer.
func TestAttemptOfALeaderEndsWithItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		line := &cut{}
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, line.on)
		<-a.Elected()
		fail(s, "update", 100, http.StatusInternalServerError)
		<-time.After(7 * time.Second)
		line.set(true)
		require.ErrorIs(t, <-a.ended, leaderelection.ErrLost)
		a.ended <- nil
		began, over := a.led()
		require.Equal(t, 10*time.Second, over.Sub(began))
	})
}

// TestErrorsOfTheWorkAreKept has work that fails after the lease is lost.
func TestErrorsOfTheWorkAreKept(t *testing.T) {
	broken := errors.New("broken")
	for _, fails := range []error{nil, context.Canceled, broken} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
			a.fails = fails
			<-a.Elected()
			edit(t, s, func(spec map[string]any) { spec["holderIdentity"] = "thief" })
			s.ForgetRequests()
			err := <-a.ended
			a.ended <- err
			require.ErrorIs(t, err, leaderelection.ErrLost)
			require.Equal(t, fails == broken, errors.Is(err, broken))
			require.NotErrorIs(t, err, context.Canceled)
			require.Equal(t, []string{"update", "get"}, requests(s), "the lease of another replica must not be released")
		})
	}
}

// TestReleasesEnd has releases that conflict, fail, or come too late.
func TestReleasesEnd(t *testing.T) {
	for name, row := range map[string]struct {
		inject func(t *testing.T, s *testserver.Server)
		want   []string
	}{
		"conflicts": {
			func(_ *testing.T, s *testserver.Server) { fail(s, "update", 100, http.StatusConflict) },
			[]string{"update", "get", "update", "get", "update", "get", "update"},
		},
		"fails": {
			func(_ *testing.T, s *testserver.Server) { fail(s, "update", 1, http.StatusInternalServerError) },
			[]string{"update"},
		},
		"cannot read": {func(_ *testing.T, s *testserver.Server) {
			fail(s, "update", 1, http.StatusConflict)
			fail(s, "get", 1, http.StatusInternalServerError)
		}, []string{"update", "get"}},
		"is too late": {func(t *testing.T, s *testserver.Server) {
			edit(t, s, func(spec map[string]any) { spec["holderIdentity"] = "thief" })
		}, []string{"update", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *testserver.Server) {
				core, logs := observer.New(zap.WarnLevel)
				a := campaign(t, s, leaderelection.Options{Identity: "a", Logger: zap.New(core)}, 0, nil)
				<-a.Elected()
				before := *lease(t, s).Spec.HolderIdentity
				row.inject(t, s)
				s.ForgetRequests()
				require.NoError(t, a.end())
				require.Equal(t, row.want, requests(s))
				require.Equal(t, "a", before)
				require.NotEmpty(t, *lease(t, s).Spec.HolderIdentity)
				if name == "is too late" {
					require.Zero(t, logs.Len())
				} else {
					require.Equal(t, "cannot release the lease; it will expire", logs.All()[0].Message)
				}
			})
		})
	}
}

// TestTimesOfAReleasedLease checks the times in a released lease.
func TestTimesOfAReleasedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
		<-a.Elected()
		<-time.After(time.Minute + time.Second)
		require.NoError(t, a.end())
		require.False(t, a.Leading(), "the work has ended")
		spec := lease(t, s).Spec
		require.Zero(t, time.Since(spec.RenewTime.Time))
		require.Zero(t, time.Since(spec.AcquireTime.Time))
	})
}

// TestLeaseWithoutAHolderIsTaken has leases without a holder: the field is missing, or empty.
func TestLeaseWithoutAHolderIsTaken(t *testing.T) {
	for _, spec := range []map[string]any{{}, {"holderIdentity": ""}} {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			createLease(t, s, spec)
			a := campaign(t, s, leaderelection.Options{Identity: "a"}, 0, nil)
			began := time.Now()
			<-a.Elected()
			require.Zero(t, time.Since(began))
		})
	}
}

// TestElectionLog checks the log. It has errors, but neither a conflict with another candidate nor the end of a
// context.
func TestElectionLog(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		core, logs := observer.New(zap.InfoLevel)
		requireLogged := func(want ...string) {
			t.Helper()
			var messages []string
			for _, entry := range logs.TakeAll() {
				messages = append(messages, entry.Message)
			}
			require.Equal(t, want, messages)
		}
		var raced atomic.Bool
		race := func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && raced.CompareAndSwap(false, true) {
					createLease(t, s, heldByOther)
				}
				return next.RoundTrip(r)
			})
		}
		fail(s, "get", 1, http.StatusInternalServerError)
		a := campaign(t, s, leaderelection.Options{Identity: "a", Logger: zap.New(core)}, 0, race)
		synctest.Wait()
		requireLogged("campaigning", "cannot get the lease")
		<-time.After(5 * time.Second)
		require.Equal(t, "other", a.Leader())
		requireLogged("new leader")
		edit(t, s, func(spec map[string]any) { spec["holderIdentity"] = "" })
		<-a.Elected()
		synctest.Wait()
		requireLogged("new leader", "leading")
		fail(s, "update", 1, http.StatusInternalServerError)
		<-time.After(2*time.Second + time.Millisecond)
		requireLogged("cannot renew the lease")
		require.NoError(t, a.end())
		require.Empty(t, a.Leader())
		requireLogged("released the lease", "no leader")

		line := &cut{closed: true}
		b := campaign(t, s, leaderelection.Options{Identity: "b", Logger: zap.New(core)}, 0, line.on)
		synctest.Wait()
		require.NoError(t, b.end())
		requireLogged("campaigning")
		line.set(false)
		c := campaign(t, s, leaderelection.Options{Identity: "c", Logger: zap.New(core), KeepLease: true}, 0, line.on)
		<-c.Elected()
		line.set(true)
		<-time.After(3 * time.Second)
		require.NoError(t, c.end())
		requireLogged("campaigning", "new leader", "leading")
	})
}
