package testserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var budgets = api.Resource{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Namespaced: true}

// budget returns a budget for the pods with the label app=web, which its controller has observed.
func budget(name string, allowed, current, desired int64) doc {
	return doc{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": doc{"name": name, "namespace": "default"},
		"spec": doc{"minAvailable": desired, "selector": doc{"matchLabels": doc{"app": "web"}}},
		"status": doc{
			"observedGeneration": int64(1), "disruptionsAllowed": allowed, "currentHealthy": current, "desiredHealthy": desired,
			"expectedPods": current,
		},
	}
}

// runningPod returns a pod on a node, which is ready or not.
func runningPod(name string, ready metav1.ConditionStatus) doc {
	p := pod(name, "app", "web")
	p["spec"].(doc)["nodeName"] = "node-0"
	p["status"] = doc{"phase": "Running", "conditions": []any{doc{"type": "Ready", "status": string(ready)}}}
	return p
}

func eviction(name string, members ...any) doc {
	out := doc{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": doc{"name": name}}
	for i := 0; i < len(members); i += 2 {
		out[members[i].(string)] = members[i+1]
	}
	return out
}

// inEvictions runs test with a budget and the pod p.
func inEvictions(t *testing.T, pod, budget doc, test func(b *bench)) {
	t.Helper()
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(budgets)
		must.Get(b.Create(pods, pod))(t)
		if budget != nil {
			must.Get(b.Create(budgets, budget))(t)
		}
		test(b)
	})
}

const (
	evictPath  = podsPath + "/p/eviction"
	budgetPath = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"
)

func TestEvictionTakesADisruption(t *testing.T) {
	inEvictions(t, runningPod("p", "True"), budget("b", 1, 3, 2), func(b *bench) {
		before := b.ok(http.MethodGet, budgetPath, nil).Object
		b.ok(http.MethodPost, evictPath, eviction("p", "deleteOptions", doc{"dryRun": []any{"All"}}))
		require.Equal(t, before, b.ok(http.MethodGet, budgetPath, nil).Object, "a dry run takes nothing")

		status := b.ok(http.MethodPost, evictPath, eviction("p"))
		require.Equal(t, doc{
			"kind": "Status", "apiVersion": "v1", "metadata": doc{}, "status": "Success", "code": int64(201),
		}, status.Object)
		p := b.ok(http.MethodGet, podsPath+"/p", nil)
		require.NotNil(t, p.GetDeletionTimestamp())
		conditions := p.Object["status"].(doc)["conditions"].([]any)
		require.Len(t, conditions, 2)
		at := conditions[1].(doc)["lastTransitionTime"]
		require.Equal(t, doc{
			"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
			"lastProbeTime": nil, "lastTransitionTime": at,
		}, conditions[1])
		require.Equal(t, doc{
			"observedGeneration": int64(1), "disruptionsAllowed": int64(0), "currentHealthy": int64(3), "desiredHealthy": int64(2),
			"expectedPods": int64(3), "disruptedPods": doc{"p": at},
			"conditions": []any{doc{
				"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
				"lastTransitionTime": at, "observedGeneration": int64(1),
			}},
		}, b.ok(http.MethodGet, budgetPath, nil).Object["status"])
		b.ok(http.MethodPost, evictPath, eviction("p")) // it is being deleted, which needs no budget
	})
}

func TestRefusedEvictions(t *testing.T) {
	const tooMany = "Cannot evict pod as it would violate the pod's disruption budget."
	with := func(change func(spec, status doc)) doc {
		d := budget("b", 0, 2, 2)
		change(d["spec"].(doc), d["status"].(doc))
		return d
	}
	failed := func(reason string) doc {
		return with(func(_, status doc) {
			status["currentHealthy"] = 3
			status["conditions"] = []any{doc{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "why"}}
		})
	}
	for name, c := range map[string]struct {
		ready   metav1.ConditionStatus
		budget  doc
		code    int
		message string
		cause   string
		after   string
	}{
		"nothing left": {"True", budget("b", 0, 2, 2), 429, tooMany, "The disruption budget b needs 2 healthy pods and has 2 currently", ""},
		"not observed": {
			"True", with(func(_, status doc) { status["observedGeneration"] = 0 }), 429, tooMany,
			"The disruption budget b is still being processed by the server.", "10",
		},
		"failed": {
			"True", failed("SyncFailed"), 429, tooMany,
			"The disruption budget b does not allow evicting pods currently because it failed sync: why", "",
		},
		"another reason": {
			"True", failed("Other"), 429, tooMany, "The disruption budget b does not allow evicting pods currently (Other): why", "",
		},
		"no reason": {"True", budget("b", 0, 3, 2), 429, tooMany, "The disruption budget b does not allow evicting pods currently", ""},
		"negative": {
			"True", budget("b", -1, 2, 2), 403, `poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative`,
			"The disruption budget b does not allow evicting pods currently: pdb disruptions allowed is negative", "",
		},
		"too many": {
			"True", with(func(_, status doc) {
				disrupted := doc{}
				for i := range 2001 {
					disrupted[fmt.Sprint("p", i)] = "2026-01-01T00:00:00Z"
				}
				status["disruptedPods"] = disrupted
			}), 403, `poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller`,
			"The disruption budget b does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller", "",
		},
		"not ready": {"False", budget("b", 0, 1, 2), 429, tooMany, "The disruption budget b needs 2 healthy pods and has 1 currently", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inEvictions(t, runningPod("p", c.ready), c.budget, func(b *bench) {
				version := b.ResourceVersion()
				a := b.do(http.MethodPost, evictPath, eviction("p"))
				require.Equal(t, c.code, a.code)
				require.Equal(t, c.after, a.header.Get("Retry-After"))
				status := a.status(t)
				require.Equal(t, c.message, status.Message)
				require.Equal(t, []metav1.StatusCause{{Type: "DisruptionBudget", Message: c.cause}}, status.Details.Causes)
				require.Equal(t, version, b.ResourceVersion(), "nothing is written")
			})
		})
	}
}

func TestEvictionsWithoutBudget(t *testing.T) {
	always := budget("b", 0, 0, 2)
	always["spec"].(doc)["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
	phase := func(name string) doc {
		p := runningPod("p", "False")
		p["status"].(doc)["phase"] = name
		return p
	}
	other := budget("b", 0, 2, 2)
	other["spec"].(doc)["selector"] = doc{"matchLabels": doc{"app": "db"}}
	none, invalid := budget("b", 0, 2, 2), budget("b", 0, 2, 2)
	delete(none["spec"].(doc), "selector")
	invalid["spec"].(doc)["selector"] = doc{"matchExpressions": []any{doc{"key": "app", "operator": "Likes"}}}
	for name, c := range map[string]struct{ pod, budget doc }{
		"no budget":          {runningPod("p", "True"), nil},
		"other pods":         {runningPod("p", "True"), other},
		"no selector":        {runningPod("p", "True"), none},
		"an invalid one":     {runningPod("p", "True"), invalid},
		"pending":            {phase("Pending"), budget("b", 0, 0, 2)},
		"succeeded":          {phase("Succeeded"), budget("b", 0, 0, 2)},
		"failed":             {phase("Failed"), budget("b", 0, 0, 2)},
		"not ready, healthy": {runningPod("p", "False"), budget("b", 0, 2, 2)},
		"not ready, always":  {runningPod("p", "False"), always},
	} {
		t.Run(name, func(t *testing.T) {
			inEvictions(t, c.pod, c.budget, func(b *bench) {
				b.ok(http.MethodPost, evictPath, eviction("p"))
				if c.budget != nil {
					status := b.ok(http.MethodGet, budgetPath, nil).Object["status"].(doc)
					require.NotContains(t, status, "disruptedPods")
				}
			})
		})
	}
}

func TestInvalidEvictions(t *testing.T) {
	inEvictions(t, runningPod("p", "True"), budget("b", 2, 4, 2), func(b *bench) {
		require.Equal(t, "name in URL does not match name in Eviction object",
			b.refused(http.StatusBadRequest, http.MethodPost, evictPath, eviction("q")).Message)
		b.refused(http.StatusNotFound, http.MethodPost, podsPath+"/none/eviction", eviction("none"))
		conflict := b.refused(http.StatusConflict, http.MethodPost, evictPath,
			eviction("p", "deleteOptions", doc{"preconditions": doc{"uid": "another"}}))
		require.Contains(t, conflict.Message, "the UID in the precondition (another) does not match")
		status := b.ok(http.MethodGet, budgetPath, nil).Object["status"].(doc)
		require.EqualValues(t, 1, status["disruptionsAllowed"], "as in kube-apiserver, the budget comes before the precondition")
		version := b.ok(http.MethodGet, podsPath+"/p", nil).GetResourceVersion()
		b.ok(http.MethodPost, evictPath, eviction("p", "deleteOptions", doc{"preconditions": doc{"resourceVersion": version}}))
	})
	inEvictions(t, runningPod("p", "True"), budget("b", 1, 3, 2), func(b *bench) {
		must.Get(b.Create(budgets, budget("c", 1, 3, 2)))(t)
		status := b.refused(http.StatusInternalServerError, http.MethodPost, evictPath, eviction("p"))
		require.Equal(t, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", status.Message)
	})
}
