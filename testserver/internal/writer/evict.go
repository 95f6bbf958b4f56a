package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
)

const (
	disruptionBudgetCause metav1.CauseType = "DisruptionBudget"
	// maxDisrupted is the number of evictions that a budget may remember before its controller confirms them.
	maxDisrupted = 2000
	// evictionRetry is the number of seconds after which a client should evict again.
	evictionRetry = 10
)

// Evict deletes a pod if its disruption budget allows it. The caller does not hold the lock.
//
// A pod that has not started, has finished or is being deleted needs no budget, because its eviction disrupts nothing.
// A pod that is not ready needs none if its budget allows that; see unhealthyPodEvictionPolicy. Any other eviction
// takes one disruption from the status of the budget, where the controller of budgets finds it.
func (wr *Writer) Evict(c *store.Collection, key api.Key, o metav1.DeleteOptions, w Write) error {
	var d Deletion
	if err := wr.locked(func() (err error) {
		d, err = wr.evict(c, key, o, w)
		return err
	}); err != nil {
		return err
	}
	wr.completed(c, d)
	return nil
}

// evict does the first write of the deletion, and what comes before it. The caller holds the lock.
func (wr *Writer) evict(c *store.Collection, key api.Key, o metav1.DeleteOptions, w Write) (Deletion, error) {
	old := c.Get(key)
	if old == nil {
		return Deletion{}, apierrors.NewNotFound(c.Definition().GroupResource(), key.Name)
	}
	pod := old.Tree()
	if !disruptive(old, pod) {
		return wr.evicted(c, old, o, w)
	}
	budgets := wr.store.Collection(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"})
	covering := covering(budgets, old, pod)
	switch {
	case len(covering) > 1:
		return Deletion{}, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	case len(covering) == 1:
		budget := covering[0].Tree()
		if unguarded(pod, budget) {
			break
		}
		if err := disrupt(covering[0].Key.Name, key.Name, budget); err != nil {
			return Deletion{}, err
		}
		if w.DryRun {
			break
		}
		if _, err := wr.exchange(&Submission{Collection: budgets, def: budgets.Definition()}, covering[0], budget); err != nil {
			return Deletion{}, err
		}
	}
	return wr.evicted(c, old, o, w)
}

// disruptive reports whether the eviction of a pod takes a running pod away.
func disruptive(pod *store.Record, tree object.Tree) bool {
	phase := object.StringAt(object.MapAt(tree, "status"), "phase")
	return !pod.Deleting && !slices.Contains([]string{"Pending", "Succeeded", "Failed"}, phase)
}

// covering returns the budgets that select a pod.
func covering(budgets *store.Collection, pod *store.Record, tree object.Tree) []*store.Record {
	if budgets == nil {
		return nil
	}
	var out []*store.Record
	have := labels.Set(object.Labels(object.MapAt(tree, "metadata")))
	for b := range budgets.All(pod.Key.Namespace) {
		if selector, err := selectorAt(object.MapAt(b.Tree(), "spec")); err == nil && selector.Matches(have) {
			out = append(out, b)
		}
	}
	return out
}

// selectorAt returns the label selector in a spec. Without one, it selects nothing.
func selectorAt(spec object.Tree) (labels.Selector, error) {
	if spec["selector"] == nil {
		return labels.Nothing(), nil
	}
	encoded, err := json.Marshal(spec["selector"])
	var selector metav1.LabelSelector
	if err == nil {
		err = json.Unmarshal(encoded, &selector)
	}
	if err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// unguarded reports whether a budget does not protect a pod because the pod is not ready.
func unguarded(pod, budget object.Tree) bool {
	if object.StringAt(object.Condition(object.MapAt(pod, "status"), "Ready"), "status") == "True" {
		return false
	}
	if object.StringAt(object.MapAt(budget, "spec"), "unhealthyPodEvictionPolicy") == "AlwaysAllow" {
		return true
	}
	status := object.MapAt(budget, "status")
	current, desired := number(status, "currentHealthy"), number(status, "desiredHealthy")
	return current >= desired && desired > 0
}

func number(m object.Tree, name string) int64 {
	n, _ := object.IntAt(m, name)
	return n
}

// disrupt takes one disruption from the status of a budget for a pod, or returns why the budget has none.
func disrupt(name, pod string, budget object.Tree) error {
	status := child(budget, "status")
	allowed, disrupted := number(status, "disruptionsAllowed"), child(status, "disruptedPods")
	switch {
	case number(status, "observedGeneration") < number(object.Metadata(budget), "generation"):
		return budgetError(apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", evictionRetry),
			fmt.Sprintf("The disruption budget %s is still being processed by the server.", name))
	case allowed < 0:
		return refusedEviction(name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
	case len(disrupted) > maxDisrupted:
		return refusedEviction(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
			"too many pending evictions not confirmed by PDB controller")
	case allowed == 0:
		return budgetError(apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0),
			exhausted(name, status))
	}
	status["disruptionsAllowed"] = allowed - 1
	if allowed == 1 {
		setBudgetCondition(status)
	}
	disrupted[pod] = now()
	return nil
}

// child returns a member that is an object. It replaces anything else by an empty object.
func child(tree object.Tree, name string) object.Tree {
	if object.MapAt(tree, name) == nil {
		tree[name] = object.Tree{}
	}
	return object.MapAt(tree, name)
}

func refusedEviction(name, reason, detail string) error {
	resource := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"} // kube-apiserver writes the singular name here
	return budgetError(apierrors.NewForbidden(resource, name, errors.New(reason)),
		fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", name, detail))
}

func budgetError(err *apierrors.StatusError, message string) error {
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: disruptionBudgetCause, Message: message})
	return err
}

// exhausted says why a budget allows no disruption.
func exhausted(name string, status object.Tree) string {
	condition := object.Condition(status, "DisruptionAllowed")
	why, reason := object.StringAt(condition, "message"), object.StringAt(condition, "reason")
	if object.StringAt(condition, "status") != "False" {
		why = ""
	}
	current, desired := number(status, "currentHealthy"), number(status, "desiredHealthy")
	switch {
	case why != "" && reason == "SyncFailed":
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", name, why)
	case current <= desired:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", name, desired, current)
	case why != "":
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", name, reason, why)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", name)
}

// setBudgetCondition records that no disruption is left.
func setBudgetCondition(status object.Tree) {
	condition := object.Condition(status, "DisruptionAllowed")
	if condition == nil {
		condition = object.Tree{"type": "DisruptionAllowed"}
		status["conditions"] = append(object.SliceAt(status, "conditions"), condition)
	}
	if condition["status"] != "False" {
		condition["status"], condition["lastTransitionTime"] = "False", now()
	}
	condition["reason"], condition["message"] = "InsufficientPods", ""
	object.SetOrDrop(condition, "observedGeneration", status["observedGeneration"])
}

// evicted adds the condition DisruptionTarget to a pod and deletes it. A precondition fails here, after the budget has
// lost its disruption.
func (wr *Writer) evicted(c *store.Collection, old *store.Record, o metav1.DeleteOptions, w Write) (Deletion, error) {
	if err := checkDeletePreconditions(c.Definition(), old, o.Preconditions); err != nil {
		return Deletion{}, err
	}
	if !w.DryRun {
		tree := old.Tree()
		markDisrupted(tree)
		r, err := wr.exchange(&Submission{Collection: c, def: c.Definition()}, old, tree)
		if err != nil {
			return Deletion{}, err
		}
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
			o.Preconditions = o.Preconditions.DeepCopy()
			version := r.ResourceVersion()
			o.Preconditions.ResourceVersion = &version
		}
	}
	return wr.delete(c, old.Key, o, w)
}

func markDisrupted(pod object.Tree) {
	status := child(pod, "status")
	condition := object.Condition(status, "DisruptionTarget")
	if condition == nil {
		condition = object.Tree{"type": "DisruptionTarget"}
		status["conditions"] = append(object.SliceAt(status, "conditions"), condition)
	}
	if condition["status"] != "True" {
		condition["status"], condition["lastTransitionTime"], condition["lastProbeTime"] = "True", now(), nil
	}
	condition["reason"], condition["message"] = "EvictionByEvictionAPI", "Eviction API: evicting"
}
