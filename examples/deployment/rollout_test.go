package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/testkit"
)

func TestRollOut(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		require.Equal(w, []string{"1: 0/4 web:1"}, w.sets())
		require.Equal(w, "True ReplicaSetUpdated", w.condition(appsv1.DeploymentProgressing))
		require.Equal(w, "False MinimumReplicasUnavailable", w.condition(appsv1.DeploymentAvailable))
		w.Pass(time.Minute)
		require.Equal(w, []string{"1: 4/4 web:1"}, w.sets())
		d := w.deployment()
		require.Equal(w, "True NewReplicaSetAvailable", w.condition(appsv1.DeploymentProgressing))
		require.Equal(w, "True MinimumReplicasAvailable", w.condition(appsv1.DeploymentAvailable))
		require.Equal(w, "1", d.Annotations["deployment.kubernetes.io/revision"])
		require.Equal(w, d.Generation, d.Status.ObservedGeneration)
		require.EqualValues(w, 1, d.Generation, "the revision is written with the status, so the generation stays")

		w.edit(image("web:2"))
		require.Equal(w, []string{"1: 3/3 web:1", "2: 0/2 web:2"}, w.sets(), "one more Pod, and one fewer available")
		w.Pass(2500 * time.Millisecond)
		require.EqualValues(w, 0, *w.deployment().Status.TerminatingReplicas, "Pods terminate within two seconds")
		w.Pass(time.Minute)
		require.Equal(w, []string{"1: 0/0 web:1", "2: 4/4 web:2"}, w.sets())
		require.Equal(w, "2", w.deployment().Annotations["deployment.kubernetes.io/revision"])
		require.EqualValues(w, 2, w.deployment().Generation)
		require.Len(w, w.pods(), 4)
		require.Equal(w, []string{"ScalingReplicaSet"}, w.events("Deployment"))
		require.Equal(w, []string{"SuccessfulCreate", "SuccessfulDelete"}, w.events("ReplicaSet"))
		require.Empty(w, w.Errors())

		before := w.Server.ResourceVersion()
		w.Pass(time.Hour)
		require.Equal(w, before, w.Server.ResourceVersion(), "there is no write without a change")
	})
}

func TestRecreate(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
		w.Pass(time.Minute)
		w.edit(image("web:2"))
		require.Equal(w, []string{"1: 0/0 web:1"}, w.sets())
		w.Pass(1900 * time.Millisecond)
		require.Len(w, w.pods(), 4, "they take two seconds to end")
		require.Equal(w, []string{"1: 0/0 web:1"}, w.sets(), "and no new Pod is created before that")
		w.Pass(1100 * time.Millisecond)
		require.Equal(w, []string{"1: 0/0 web:1", "2: 0/4 web:2"}, w.sets())
		w.Pass(time.Minute)
		require.Equal(w, []string{"1: 0/0 web:1", "2: 4/4 web:2"}, w.sets())
		require.Empty(w, w.Errors())
	})
}

func TestRollback(t *testing.T) {
	inProgram(t, func(w *world) {
		// A rollout of one Pod records two Events. With more Pods it comes close to the 25 Events of one object after
		// which the recorder drops the rest.
		w.deploy(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) })
		for _, name := range []string{"web:2", "web:3"} {
			w.Pass(time.Minute)
			w.edit(image(name))
		}
		w.Pass(time.Minute)
		back := func(to string) {
			w.edit(backTo(to))
			w.Pass(time.Minute)
			require.NotContains(w, w.deployment().Annotations, appsv1.DeprecatedRollbackTo)
		}
		back("1")
		require.Equal(w, []string{"2: 0/0 web:2", "3: 0/0 web:3", "4: 1/1 web:1"}, w.sets())
		back("0")
		require.Equal(w, []string{"2: 0/0 web:2", "4: 0/0 web:1", "5: 1/1 web:3"}, w.sets())
		require.Equal(w, []string{"DeploymentRollback", "ScalingReplicaSet"}, w.events("Deployment"))
		back("5")
		require.Equal(w, []string{"DeploymentRollback", "DeploymentRollbackTemplateUnchanged", "ScalingReplicaSet"}, w.events("Deployment"))
		require.Equal(w, "web:3", w.deployment().Spec.Template.Spec.Containers[0].Image)
		for _, s := range testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, "") {
			if s.Spec.Template.Spec.Containers[0].Image == "web:1" {
				require.Equal(w, "1", s.Annotations["deployment.kubernetes.io/revision-history"])
			}
		}
		require.Empty(w, w.Errors())
	})
}

func backTo(revision string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[appsv1.DeprecatedRollbackTo] = revision
	}
}

// TestRollbackKeepsTheCurrentTemplate rolls back a Deployment whose template was changed while it was paused, or
// together with the request. The template has no Pods yet. It becomes a revision, so "the last revision" is the one
// before it.
func TestRollbackKeepsTheCurrentTemplate(t *testing.T) {
	resume := func(d *appsv1.Deployment) { d.Spec.Paused = false }
	both := func(a, b func(*appsv1.Deployment)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { a(d); b(d) }
	}
	for name, change := range map[string]func(w *world){
		"paused": func(w *world) {
			w.edit(func(d *appsv1.Deployment) { d.Spec.Paused = true })
			w.edit(image("web:3"))
			w.edit(backTo("0"))
			w.Pass(time.Minute)
			require.Equal(w, []string{"1: 0/0 web:1", "2: 4/4 web:2"}, w.sets(), "paused, nothing happens")
			w.edit(resume)
		},
		"changed while paused, request when resumed": func(w *world) {
			w.edit(func(d *appsv1.Deployment) { d.Spec.Paused = true })
			w.edit(image("web:3"))
			w.edit(both(resume, backTo("0")))
		},
		"at once": func(w *world) { w.edit(both(image("web:3"), backTo("0"))) },
		"to an unknown older revision": func(w *world) {
			w.edit(both(image("web:3"), backTo("17")))
			w.Pass(time.Minute)
			require.Equal(w, []string{"1: 0/0 web:1", "2: 0/0 web:2", "3: 4/4 web:3"}, w.sets(), "it is rolled out")
			w.edit(backTo("2"))
		},
		"to a template that had a revision before": func(w *world) {
			w.edit(both(image("web:1"), backTo("0")))
			w.Pass(time.Minute)
			require.Equal(w, []string{"3: 0/0 web:1", "4: 4/4 web:2"}, w.sets())
			w.edit(image("web:3"))
			w.Pass(time.Minute)
			w.edit(backTo("4"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inProgram(t, func(w *world) {
				w.deploy(asIs)
				w.Pass(time.Minute)
				w.edit(image("web:2"))
				w.Pass(time.Minute)
				change(w)
				w.Pass(time.Minute)
				sets := w.sets()
				running := slices.IndexFunc(sets, func(s string) bool { return strings.HasSuffix(s, "4/4 web:2") })
				require.GreaterOrEqual(w, running, 0, sets)
				require.True(w, slices.ContainsFunc(sets, func(s string) bool { return strings.HasSuffix(s, "0/0 web:3") }), sets)
				require.Len(w, sets, 3)
				require.Contains(w, w.events("Deployment"), "DeploymentRollback")
				for _, p := range w.pods() {
					require.Equal(w, "web:2", p.Spec.Containers[0].Image)
				}
				require.Empty(w, w.Errors())
			})
		})
	}
}

func TestRollbackToNothing(t *testing.T) {
	for _, to := range []string{"0", "17", "soon"} {
		inProgram(t, func(w *world) {
			w.deploy(asIs)
			w.Pass(time.Minute)
			w.edit(backTo(to))
			require.Equal(w, []string{"DeploymentRollbackRevisionNotFound", "ScalingReplicaSet"}, w.events("Deployment"))
			require.NotContains(w, w.deployment().Annotations, appsv1.DeprecatedRollbackTo)
			require.Equal(w, []string{"1: 4/4 web:1"}, w.sets())
		})
	}
}

func TestNodePressureIsRepaired(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		w.Pass(time.Minute)
		p := w.pods()[0]
		_, err := w.Server.Update(workload.Pods, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": p.Spec,
			"metadata": map[string]any{"namespace": p.Namespace, "name": p.Name, "labels": p.Labels, "ownerReferences": p.OwnerReferences},
			"status":   map[string]any{"phase": corev1.PodFailed, "reason": "Evicted"},
		})
		require.NoError(w, err)
		w.Pass(time.Minute)
		require.Len(w, w.pods(), 5, "the failed Pod stays, so that a user can inspect it")
		require.Equal(w, []string{"1: 4/4 web:1"}, w.sets())
	})
}

func TestHistoryIsKeptWithinItsLimit(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32); *d.Spec.RevisionHistoryLimit = 2 })
		for _, name := range []string{"web:2", "web:3", "web:4", "web:5"} {
			w.Pass(time.Minute)
			w.edit(image(name))
		}
		w.Pass(time.Minute)
		require.Equal(w, []string{"3: 0/0 web:3", "4: 0/0 web:4", "5: 4/4 web:5"}, w.sets())
	})
}

func TestProgressDeadlineIsExact(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(func(d *appsv1.Deployment) {
			seconds := int32(60)
			d.Spec.ProgressDeadlineSeconds = &seconds
			image("web:broken")(d)
		})
		// The fourth Pod of the set made progress at the start. The deadline is counted from then, plus the second that
		// covers the truncated fractions of the condition's time.
		w.Pass(61*time.Second - time.Nanosecond)
		require.Equal(w, "True ReplicaSetUpdated", w.condition(appsv1.DeploymentProgressing))
		w.Pass(time.Nanosecond)
		require.Equal(w, "False ProgressDeadlineExceeded", w.condition(appsv1.DeploymentProgressing))
		w.Pass(time.Hour)
		require.Equal(w, "False ProgressDeadlineExceeded", w.condition(appsv1.DeploymentProgressing), "there is no retry")

		w.edit(image("web:2"))
		w.Pass(time.Minute)
		require.Equal(w, "True NewReplicaSetAvailable", w.condition(appsv1.DeploymentProgressing))
		require.Equal(w, []string{"1: 0/0 web:broken", "2: 4/4 web:2"}, w.sets())
	})
}
