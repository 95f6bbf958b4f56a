package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

const waits = "waiting until the server serves the resource"

// TestDefinitionComesLater starts the program before the server serves TrainingJobs.
func TestDefinitionComesLater(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		w.start()
		w.Pass(10 * time.Minute) // longer than any timeout
		require.Equal(w, 1, w.Logs().FilterMessage(waits).Len(), "it is logged once")
		require.Zero(w, w.Requests("watch", "pods"), "and there are no other requests")
		w.define()
		w.submit(asIs)
		w.Pass(askAgain)
		require.Equal(w, everybody, w.pods())
		require.Empty(w, w.Errors())
	})
}

// TestDefinitionGoesAndComes deletes the definition, which also deletes all jobs, and creates it again.
func TestDefinitionGoesAndComes(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(asIs)
		require.NoError(w, w.Server.Delete(job.Definitions, api.Key{Name: "trainingjobs.training.leat.example"}))
		for _, name := range everybody { // as the garbage collector does
			require.NoError(w, w.Server.Delete(api.Resource{Version: "v1", Plural: "pods", Namespaced: true}, api.Key{Namespace: "lab", Name: "mnist-" + name}))
		}
		w.Pass(10 * time.Minute)
		require.Empty(w, w.pods(), "nothing is created for a deleted job")
		w.define()
		w.submit(asIs)
		w.Pass(time.Minute)
		require.Equal(w, everybody, w.pods())
		w.ends("chief-0", corev1.PodSucceeded, 0)
		require.Equal(w, "Created Succeeded", w.state())
	})
}

// TestMissingPermission expects one line that names the missing permission. A missing definition is something else.
func TestMissingPermission(t *testing.T) {
	for resource, says := range map[string]string{
		"trainingjobs": "cannot list training jobs: list trainingjobs.training.leat.example",
		"services":     "services",
	} {
		forbidden := testserver.Options{Authorize: func(r testserver.Request) error {
			if r.Resource == resource {
				return errors.New("no permission")
			}
			return nil
		}}
		inWorld(t, forbidden, func(w *world) {
			began := time.Now()
			o := w.options(cli.Options{SyncTimeout: 30 * time.Second}, w.output())
			err := serve(context.Background(), o)
			require.Equal(w, 30*time.Second, time.Since(began))
			require.True(w, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(w, err, says)
			require.ErrorContains(w, err, "no permission")
			require.NotContains(w, cli.OneLine(err), "\n")
		})
	}
}

// TestEachFailureHasItsOwnTime has failed lists, then an unknown resource, then failed lists again. The patience begins
// again each time.
func TestEachFailureHasItsOwnTime(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		fail := func() *testserver.Injection {
			return w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Fail{Code: http.StatusForbidden}})
		}
		// The server does not count requests for unknown resources as lists.
		w.define()
		refused := fail()
		w.startWith(cli.Options{SyncTimeout: time.Minute})
		for range 3 {
			w.Pass(50 * time.Second)
			refused.Remove()
			require.NoError(w, w.Server.Delete(job.Definitions, api.Key{Name: "trainingjobs.training.leat.example"}))
			w.Pass(time.Minute)
			w.define()
			refused = fail()
		}
		refused.Remove()
		w.submit(asIs)
		w.Pass(askAgain)
		require.Equal(w, everybody, w.pods())
		require.Equal(w, 1, w.Logs().FilterMessage(waits).Len())
	})
}

func TestInstall(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		for range 2 { // the definition may exist already
			w.start(func(o *options) { o.install = true })
			w.Pass(askAgain)
			w.program.Stop()
		}
		w.start()
		w.submit(asIs)
		require.Equal(w, everybody, w.pods())
		u, err := w.Server.Get(job.Definitions, api.Key{Name: "trainingjobs.training.leat.example"})
		require.NoError(w, err)
		require.EqualValues(w, 1, u.GetGeneration())
	})
	inEmptyWorld(t, testserver.Options{Authorize: func(r testserver.Request) error {
		if r.Verb == "patch" {
			return errors.New("no permission")
		}
		return nil
	}}, func(w *world) {
		o := w.options(cli.Options{}, w.output())
		o.install = true
		err := serve(context.Background(), o)
		require.ErrorContains(w, err, "customresourcedefinitions")
		require.ErrorContains(w, err, "no permission")
	})
}

// TestEndsWhileItWaits ends the program before the server serves TrainingJobs.
func TestEndsWhileItWaits(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		w.start()
		began := time.Now()
		w.program.Stop()
		require.Zero(w, time.Since(began))
	})
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"get", "list"}}, Effect: faults.Stall{}})
		w.start()
		w.Idle()
		w.program.Stop()
	})
}

// TestReadinessNamesTheCause checks that readiness distinguishes a missing permission from a missing definition.
func TestReadinessNamesTheCause(t *testing.T) {
	forbidden := testserver.Options{Authorize: func(r testserver.Request) error {
		if r.Verb == "list" {
			return errors.New("no permission")
		}
		return nil
	}}
	for says, o := range map[string]testserver.Options{
		"no permission":                          forbidden,
		"install their CustomResourceDefinition": {},
	} {
		inEmptyWorld(t, o, func(w *world) {
			waits := &waiter{client: w.Client, log: zap.NewNop(), then: func() error { return errors.New("the wait is over") }}
			require.ErrorContains(w, waits.check(w.Context()), "has not ended yet")
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- waits.Run(ctx) }()
			w.Idle()
			require.ErrorContains(w, waits.check(w.Context()), says)
			cancel()
			require.NoError(w, <-ended)
		})
	}
}

// TestEndsWhileItInstalls expects no error.
func TestEndsWhileItInstalls(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"patch"}}, Effect: faults.Stall{}})
		w.start(func(o *options) { o.install = true })
		w.program.Stop()
	})
}

// TestWebhooksNeedACertificate: without files, the program does not start.
func TestWebhooksNeedACertificate(t *testing.T) {
	p, err := program.New(program.Options{Name: name, Logger: zap.NewNop(), Config: apiclient.Config{Host: "http://localhost"}})
	require.NoError(t, err)
	o := options{Program: p}
	require.NoError(t, o.addWebhooks(), "none are wanted")
	o.webhooks.Address = "127.0.0.1:0"
	require.ErrorContains(t, o.addWebhooks(), "CertFile")
	o.webhooks.CertFile, o.webhooks.KeyFile = "tls.crt", "tls.key"
	require.NoError(t, o.addWebhooks())
	require.NoError(t, p.Err())
}
