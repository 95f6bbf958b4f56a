package builtin

import (
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
)

const bindingName = "binding"

// bound returns a pod that has been assigned to a node. No strategy takes part in this write: the generation stays the
// same. The pod gets the condition that tells why it does not wait any more.
func bound(pod object.Tree) object.Tree {
	out := maps.Clone(pod)
	delete(out, "kind")
	delete(out, "apiVersion")
	status := maps.Clone(object.MapAt(pod, "status"))
	if status == nil {
		status = object.Tree{}
	}
	delete(status, "nominatedNodeName")
	scheduled := object.Tree{
		"type": "PodScheduled", "status": "True", "lastProbeTime": nil,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	var conditions []any
	for _, c := range object.SliceAt(status, "conditions") {
		if condition, ok := c.(object.Tree); !ok || condition["type"] != scheduled["type"] {
			conditions = append(conditions, c)
		}
	}
	status["conditions"] = append(conditions, scheduled)
	out["status"] = status
	return out
}

// checkAction validates the object of an action, in the internal version.
func checkAction(obj runtime.Object) error {
	switch o := obj.(type) {
	case *core.Binding:
		if errs := corevalidation.ValidatePodBinding(o); len(errs) > 0 {
			return store.StorageError(errs.ToAggregate()) // as kube-apiserver answers an error that it does not classify
		}
	case *autoscaling.Scale:
		if errs := autoscalingvalidation.ValidateScale(o); len(errs) > 0 {
			return apierrors.NewInvalid(autoscaling.Kind("Scale"), o.Name, errs)
		}
	}
	return nil
}
