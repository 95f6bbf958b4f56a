package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestOrphanedPods(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		w.Pass(time.Minute)
		p := w.pods()[0]
		must.Get(w.Server.Edit(workload.Pods, api.KeyOf(p), func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }))(w)
		w.Pass(time.Minute)
		require.Len(w, w.pods(), 4)
		for _, p := range w.pods() {
			require.NotNil(w, metav1.GetControllerOf(p))
		}
		must.Get(w.Server.Edit(workload.Pods, api.KeyOf(p), func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"debug": "me"}) }))(w)
		w.Pass(time.Minute)
		require.Len(w, w.pods(), 5, "a relabelled Pod is released and replaced")
		require.Equal(w, []string{"1: 4/4 web:1"}, w.sets())
	})
}

// TestCollision creates a foreign object with the name of the next ReplicaSet.
func TestCollision(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		name := testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, "")[0].Name
		w.program.Stop()
		w.Pass(time.Second)
		require.NoError(w, w.Server.Delete(workload.Deployments, web))
		key := api.Key{Namespace: web.Namespace, Name: name}
		must.Get(w.Server.Edit(workload.ReplicaSets, key, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"app": "another"})
			u.SetOwnerReferences(nil)
		}))(w)
		w.start()
		w.deploy(asIs)
		w.Pass(time.Minute)
		d := w.deployment()
		require.EqualValues(w, 1, *d.Status.CollisionCount)
		require.EqualValues(w, 4, d.Status.AvailableReplicas)
		require.Len(w, w.sets(), 2)
		require.Empty(w, w.Errors())
	})
}

func TestInvalidDeployments(t *testing.T) {
	for says, change := range map[string]func(*appsv1.Deployment){
		"spec.selector is missing":  func(d *appsv1.Deployment) { d.Spec.Selector = nil },
		"does not match":            func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"app": "other"} },
		"unknown strategy":          func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Somehow" },
		"the selector is invalid: ": func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "not a label" },
	} {
		inProgram(t, func(w *world) {
			w.deploy(change)
			w.Pass(time.Hour)
			require.Equal(w, "False InvalidSpec", w.condition(appsv1.DeploymentProgressing))
			require.Equal(w, []string{"InvalidSpec"}, w.events("Deployment"))
			require.LessOrEqual(w, len(w.Errors()), 2, "one reconcile of the Deployment, and one of its status")
			w.requireContains(w.Errors(), "is not retried")
			w.requireContains(w.Errors(), says)
			d := w.deployment()
			require.Equal(w, d.Generation, d.Status.ObservedGeneration)
		})
	}
}

func TestSelectingAll(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
		w.Pass(time.Minute)
		require.Equal(w, []string{"SelectingAll"}, w.events("Deployment"))
		d := w.deployment()
		require.Equal(w, d.Generation, d.Status.ObservedGeneration)
		require.Empty(w, w.sets())
		require.Empty(w, w.Errors())
	})
}

// TestRefusedSets has a server that refuses the new ReplicaSet: temporarily, permanently, and because the namespace
// terminates.
func TestRefusedSets(t *testing.T) {
	refuse := func(w *world, f faults.Fail) *testserver.Injection {
		return w.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"create"}, Resource: "replicasets.apps"}, Effect: f,
		})
	}
	inProgram(t, func(w *world) {
		refused := refuse(w, faults.Fail{Code: 403, Message: "exceeded quota"})
		w.deploy(asIs)
		w.Pass(10 * time.Millisecond)
		require.Equal(w, "False ReplicaSetCreateError", w.condition(appsv1.DeploymentProgressing))
		require.Equal(w, []string{"ReplicaSetCreateError"}, w.events("Deployment"))
		refused.Remove()
		w.Pass(time.Minute)
		require.Equal(w, "True NewReplicaSetAvailable", w.condition(appsv1.DeploymentProgressing))
	})
	inProgram(t, func(w *world) {
		refused := refuse(w, faults.Fail{Code: 422, Message: "the template is nonsense"})
		w.deploy(asIs)
		w.Pass(time.Hour)
		require.LessOrEqual(w, refused.Seen(), 3)
		w.requireContains(w.Errors(), "is not retried")
		require.Equal(w, "False ReplicaSetCreateError", w.condition(appsv1.DeploymentProgressing))
	})
	inProgram(t, func(w *world) {
		refused := refuse(w, faults.Fail{Code: 500})
		w.deploy(asIs)
		w.Pass(24 * time.Hour)
		require.Less(w, refused.Seen(), 60, "fifteen retries, and another one after an event")
	})
}

// TestNamespaceThatEnds deletes the namespace of a Deployment.
func TestNamespaceThatEnds(t *testing.T) {
	terminating := []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"being terminated",
		"details":{"causes":[{"reason":"NamespaceTerminating","message":"namespace shop is being terminated","field":"metadata.namespace"}]}}`)
	for _, resource := range []string{"replicasets.apps", "pods"} {
		inProgram(t, func(w *world) {
			refused := w.Server.Inject(faults.Fault{
				Match:  faults.Match{Verbs: []string{"create"}, Resource: resource},
				Effect: faults.Fail{Code: 403, Body: terminating, Header: map[string][]string{"Content-Type": {"application/json"}}},
			})
			w.deploy(asIs)
			w.Pass(time.Hour)
			require.NotZero(w, refused.Seen())
			require.LessOrEqual(w, refused.Seen(), 3, resource)
			require.Empty(w, w.Errors(), resource)
		})
	}
}

// TestStoppedBetweenTwoWrites stops the program before each write of a rollout, as a crash would. A new program
// completes the rollout.
func TestStoppedBetweenTwoWrites(t *testing.T) {
	for at := range 12 {
		inProgram(t, func(w *world) {
			w.deploy(asIs)
			w.Pass(time.Minute)
			held := w.Server.Inject(faults.Fault{
				Match: faults.Match{Verbs: []string{"create", "update", "patch", "delete"}}, Skip: at, Effect: faults.Reset{},
			})
			w.edit(image("web:2"))
			w.Pass(time.Second)
			w.program.Stop()
			held.Remove()
			w.start()
			w.Pass(5 * time.Minute)
			require.Equal(w, []string{"1: 0/0 web:1", "2: 4/4 web:2"}, w.sets(), "stopped at write %d", at)
			require.Len(w, w.pods(), 4)
		})
	}
}

// TestMissingPermission expects one line that names the missing permission.
func TestMissingPermission(t *testing.T) {
	forbidden := testserver.Options{Authorize: func(r testserver.Request) error {
		if r.Resource == "replicasets" {
			return errors.New("no permission")
		}
		return nil
	}}
	inWorld(t, forbidden, func(w *world) {
		o := options{
			Program: w.newProgram(cli.Options{Workers: 1, SyncTimeout: 30 * time.Second}, nil),
			parts:   map[string]bool{partDeployment: true},
		}
		began := time.Now()
		err := serve(context.Background(), o)
		require.Equal(w, 30*time.Second, time.Since(began))
		line := cli.OneLine(err)
		require.Contains(w, line, "replicasets.apps")
		require.Contains(w, line, "no permission")
		require.NotContains(w, line, "\n")
	})
}

func TestCommandLine(t *testing.T) {
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":           {[]string{"-h"}, 0, "-pod-start"},
		"unknown part":   {[]string{"--run", "deployment,scheduler"}, 2, "scheduler"},
		"nobody answers": {[]string{"--server", "http://" + closed.Addr().String(), "--sync-timeout", "100ms"}, 1, "refused"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, c.code, command().Run(t.Context(), c.args, &stderr), name)
		require.Contains(t, stderr.String(), c.says, name)
		if c.code != 0 {
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			require.True(t, strings.HasPrefix(lines[len(lines)-1], "deployment: "), "%s: %s", name, &stderr)
		}
	}
}

// TestADecisionWaitsForTheOneBefore hides the ReplicaSet of the first decision from the cache. Without the gate, the
// second decision would create it again.
func TestADecisionWaitsForTheOneBefore(t *testing.T) {
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start(partDeployment)
		creations := w.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"create"}, Resource: "replicasets.apps"}, Effect: faults.Delay{},
		})
		stalled := w.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"watch"}, Resource: "replicasets.apps"}, Effect: faults.StallEvents{},
		})
		w.deploy(asIs)
		w.Pass(5*time.Second - time.Nanosecond)
		w.edit(scale(5))
		require.Equal(w, 1, creations.Seen())
		require.Less(w, w.deployment().Status.ObservedGeneration, w.deployment().Generation)
		w.Pass(time.Nanosecond)
		require.Equal(w, 2, creations.Seen(), "it continues after a while and finds the set")
		require.Nil(w, w.deployment().Status.CollisionCount)
		w.edit(scale(6))
		require.Equal(w, 2, creations.Seen(), "and waits for its event")
		stalled.Remove()
		w.Pass(time.Second)
		require.Equal(w, []string{"1: 0/6 web:1"}, w.sets())
		require.Equal(w, w.deployment().Generation, w.deployment().Status.ObservedGeneration)
		require.Empty(w, w.Errors())
	})
}

// TestOrphansAreAdoptedAndStrangersReleased removes the ReplicaSets of a Deployment and gives them back, with owner
// references and with labels.
func TestOrphansAreAdoptedAndStrangersReleased(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		w.Pass(time.Minute)
		set := testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, "")[0]
		change := func(f func(*unstructured.Unstructured)) *appsv1.ReplicaSet {
			must.Get(w.Server.Edit(workload.ReplicaSets, api.KeyOf(set), f))(w)
			w.Pass(time.Second)
			return testkit.Get[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, api.KeyOf(set))
		}
		adopted := change(func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
		require.Equal(w, w.deployment().UID, metav1.GetControllerOf(adopted).UID)
		require.Equal(w, []string{"1: 4/4 web:1"}, w.sets(), "and nothing else has changed")

		released := change(func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"app": "other"}) })
		require.Empty(w, released.OwnerReferences)
		w.Pass(time.Minute)
		require.Len(w, w.sets(), 2, "there is a new one instead")
		require.EqualValues(w, 1, *w.deployment().Status.CollisionCount, "with another name, because that one is taken")
		require.EqualValues(w, 4, w.deployment().Status.Replicas)
	})
}
