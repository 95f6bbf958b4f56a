package exec_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/internal/fixture/must"
)

var _ apiclient.CredentialSource = (*exec.Plugin)(nil)

// script is a plugin whose runs a test answers one after the other.
type script struct {
	*exec.Plugin
	runs    atomic.Int32
	running atomic.Int32
	do      func(ctx context.Context, run int) ([]byte, error)
}

func newScript(t *testing.T, do func(ctx context.Context, run int) ([]byte, error)) *script {
	t.Helper()
	s := &script{Plugin: newPlugin(t, options(t, "none")), do: do}
	s.Fake(func(ctx context.Context, _ exec.Run) ([]byte, error) {
		if s.running.Add(1) > 1 {
			t.Error("two runs at once")
		}
		defer s.running.Add(-1)
		return s.do(ctx, int(s.runs.Add(1)))
	})
	return s
}

// want asks for credentials and compares the token and the number of runs so far.
func (s *script) want(t *testing.T, text string, runs int) apiclient.Credentials {
	t.Helper()
	c := must.Get(s.Credentials(t.Context()))(t)
	require.Equal(t, text, c.Token.Reveal())
	require.EqualValues(t, runs, s.runs.Load(), "runs")
	return c
}

// numbered answers each run with its number, after a second.
func numbered(lifetime time.Duration) func(context.Context, int) ([]byte, error) {
	return func(_ context.Context, run int) ([]byte, error) {
		pass(time.Second)
		return token(fmt.Sprint(run), lifetime)
	}
}

func TestOneRunServesAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(0))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				c, err := s.Credentials(t.Context())
				if err != nil || c.Token.Reveal() != "1" {
					t.Errorf("%v, %v", c.Token.Reveal(), err)
				}
			})
		}
		all.Wait()
		s.want(t, "1", 1)
	})
}

func TestACallThatGivesUpDoesNotEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(0))
		impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { s.want(t, "1", 1) })
		begun := time.Now()
		_, err := s.Credentials(impatient)
		require.Equal(t, context.DeadlineExceeded, err)
		require.Equal(t, 300*time.Millisecond, time.Since(begun))
		all.Wait()
		require.Equal(t, time.Second, time.Since(begun))

		_, err = s.Credentials(impatient)
		require.Equal(t, context.DeadlineExceeded, err, "a context that has ended gets an error, also if credentials are known")
	})
}

func TestARunEndsWithItsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(ctx context.Context, run int) ([]byte, error) {
			if run == 1 {
				<-ctx.Done()
				pass(time.Second) // it takes its time to go
				return nil, ctx.Err()
			}
			return token("second", 0)
		})
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Minute)
				defer cancel()
				_, err := s.Credentials(ctx)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				took := time.Duration(i+1) * time.Minute
				if i == 2 {
					took += time.Second // the last sees the process gone
				}
				if time.Since(begun) != took {
					t.Errorf("%d left after %v", i, time.Since(begun))
				}
			})
		}
		pass(3*time.Minute + time.Millisecond)
		s.want(t, "second", 2) // at once after the first is gone: it was killed and has not failed
		require.Equal(t, 3*time.Minute+time.Second, time.Since(begun))
		all.Wait()
	})
}

func TestASuccessDuringTheKillIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(ctx context.Context, _ int) ([]byte, error) {
			<-ctx.Done()
			return token("late", 0)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Credentials(ctx)
		require.Equal(t, context.DeadlineExceeded, err)
		s.want(t, "late", 1)
	})
}

func TestARunHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(ctx context.Context, _ int) ([]byte, error) {
			<-ctx.Done()
			return nil, errors.New("signal: killed")
		})
		begun := time.Now()
		_, err := s.Credentials(t.Context())
		require.ErrorIs(t, err, exec.ErrTimeout)
		require.ErrorContains(t, err, "it took too long: it was ended after 5m0s")
		require.Equal(t, exec.DefaultTimeout, time.Since(begun))
	})
}

func TestCredentialsAreReplacedBeforeTheyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(time.Hour)) // an hour from the end of the run
		s.want(t, "1", 1)
		pass(time.Hour - 10*time.Second - time.Nanosecond)
		s.want(t, "1", 1)
		pass(time.Nanosecond)
		s.want(t, "2", 2)
		s.want(t, "2", 2)
	})
}

func TestCredentialsThatAreNearTheirEndAreUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(10*time.Second))
		s.want(t, "1", 1)
		pass(10*time.Second - time.Nanosecond)
		s.want(t, "1", 1)
		pass(time.Nanosecond)
		s.want(t, "2", 2)
	})
}

func TestCredentialsWithoutAnEndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(0))
		s.want(t, "1", 1)
		pass(100 * 365 * 24 * time.Hour)
		s.want(t, "1", 1)
	})
}

func TestAfterAFailureThereIsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		s := newScript(t, func(_ context.Context, run int) ([]byte, error) {
			if broken {
				return nil, fmt.Errorf("run %d went wrong", run)
			}
			return token("good", 0)
		})
		for range 3 {
			require.ErrorContains(t, must.Err(s.Credentials(t.Context())), "run 1 went wrong")
			pass(3 * time.Second)
		}
		broken = false
		pass(time.Second - time.Nanosecond)
		require.ErrorContains(t, must.Err(s.Credentials(t.Context())), "run 1 went wrong")
		pass(time.Nanosecond)
		s.want(t, "good", 2)
	})
}

func TestGoodCredentialsOutliveAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(_ context.Context, run int) ([]byte, error) {
			if run == 1 {
				return token("old", time.Hour)
			}
			return nil, errors.New("no network")
		})
		s.want(t, "old", 1)
		pass(time.Hour - 9*time.Second)
		s.want(t, "old", 2) // the run failed
		s.want(t, "old", 2) // the pause
		pass(9 * time.Second)
		require.ErrorContains(t, must.Err(s.Credentials(t.Context())), "no network")
		require.EqualValues(t, 2, s.runs.Load())
		pass(time.Second)
		require.ErrorContains(t, must.Err(s.Credentials(t.Context())), "no network")
		require.EqualValues(t, 3, s.runs.Load())
	})
}

func TestRefusedCredentialsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, numbered(0))
		s.Refused(apiclient.Credentials{}) // nothing was given yet
		first := s.want(t, "1", 1)
		s.Refused(apiclient.Credentials{Token: apiclient.NewSecret("1")}) // the same token, from elsewhere in memory
		second := s.want(t, "2", 2)
		s.Refused(first)
		s.want(t, "2", 2) // late news of the first

		s.Refused(second)
		s.want(t, "2", 2) // a second refusal in a row within ten seconds
		pass(10*time.Second - time.Nanosecond)
		s.Refused(second)
		s.want(t, "2", 2)
		pass(time.Nanosecond)
		s.Refused(first)
		s.want(t, "2", 2) // still late
		s.Refused(second)
		s.want(t, "3", 3)
	})
}

func TestRefusedCredentialsDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(_ context.Context, run int) ([]byte, error) {
			if run == 2 {
				return nil, errors.New("no network")
			}
			return token(fmt.Sprint(run), time.Hour)
		})
		s.Refused(s.want(t, "1", 1))
		for range 2 { // after the run, and in the pause
			require.ErrorContains(t, must.Err(s.Credentials(t.Context())), "no network")
		}
		pass(10 * time.Second)
		s.want(t, "3", 3)
	})
}

func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certA, keyA := certificate(t, time.Hour)
		certB, keyB := certificate(t, 2*time.Hour)
		s := newScript(t, func(_ context.Context, run int) ([]byte, error) {
			status := map[string]any{"clientCertificateData": certA, "clientKeyData": keyA, "token": fmt.Sprint(run)}
			if run == 3 {
				status = map[string]any{"clientCertificateData": certB, "clientKeyData": keyB}
			}
			status["expirationTimestamp"] = time.Now().Add(3 * time.Hour).Format(time.RFC3339)
			return []byte(answer(exec.V1, status)), nil
		})
		first := s.want(t, "1", 1)
		require.NotNil(t, first.Certificate.Leaf)

		s.Refused(apiclient.Credentials{Token: first.Token})
		s.want(t, "1", 1) // another certificate: these are not the ones that were refused
		s.Refused(first)
		second := s.want(t, "2", 2)
		require.Same(t, first.Certificate, second.Certificate, "a client keeps its connections")

		pass(time.Hour - 10*time.Second) // the certificate ends before the timestamp
		third := s.want(t, "", 3)
		require.NotSame(t, first.Certificate, third.Certificate)
		require.True(t, third.Token.IsZero())
	})
}

func TestPluginsShowNoCredential(t *testing.T) {
	o := options(t, "none", variable("PASSWORD", secret))
	o.Args = []string{secret}
	o.Cluster = &exec.Cluster{Server: "https://s", Config: []byte(`"` + secret + `"`)}
	p := newPlugin(t, o)
	p.Fake(func(context.Context, exec.Run) ([]byte, error) { return token(secret, 0) })
	for range 2 { // the second call comes after the end of the run's goroutine
		must.Get(p.Credentials(t.Context()))(t)
	}
	for _, v := range []any{o, &o, p, *o.Cluster, o.Cluster, o.Env, struct{ o exec.Options }{exec.Options{Env: o.Env}}, struct{ p *exec.Plugin }{p}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			require.NotContains(t, fmt.Sprintf(verb, v), secret, "%T %s", v, verb)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", secret), "%T %s", v, verb)
		}
	}
	text := must.Get(json.Marshal([]any{o, &o, o.Cluster}))(t)
	require.NotContains(t, string(text), secret)
	require.NotContains(t, string(text), base64.StdEncoding.EncodeToString([]byte(secret))[:8])
	require.Contains(t, fmt.Sprint(o), "PASSWORD")
	require.Contains(t, fmt.Sprint(p), self(t))
}
