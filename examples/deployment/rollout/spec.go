package rollout

import (
	"errors"
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The defaults of apps/v1. A kube-apiserver sets them when it stores the object. The controller applies them when it
// reads, so that it also works with a server without schemas. It does not write them back.
const (
	defaultReplicas         = 1
	defaultHistory          = 10
	defaultProgressDeadline = 600 * time.Second
)

var quarter = intstr.FromString("25%")

// replicas returns how many Pods a Deployment wants.
func replicas(d *appsv1.Deployment) int32 { return orDefault(d.Spec.Replicas) }

// sizeOf returns how many Pods a ReplicaSet wants.
func sizeOf(s *appsv1.ReplicaSet) int32 { return orDefault(s.Spec.Replicas) }

func orDefault(n *int32) int32 {
	if n == nil {
		return defaultReplicas
	}
	return *n
}

func strategy(d *appsv1.Deployment) appsv1.DeploymentStrategyType {
	if d.Spec.Strategy.Type == "" {
		return appsv1.RollingUpdateDeploymentStrategyType
	}
	return d.Spec.Strategy.Type
}

// historyLimit returns how many old ReplicaSets are kept; false means all.
func historyLimit(d *appsv1.Deployment) (int, bool) {
	switch limit := d.Spec.RevisionHistoryLimit; {
	case limit == nil:
		return defaultHistory, true
	case *limit == math.MaxInt32:
		return 0, false
	default:
		return int(*limit), true
	}
}

// progressDeadline returns how long a rollout may take without progress; false means forever.
func progressDeadline(d *appsv1.Deployment) (time.Duration, bool) {
	switch seconds := d.Spec.ProgressDeadlineSeconds; {
	case seconds == nil:
		return defaultProgressDeadline, true
	case *seconds == math.MaxInt32:
		return 0, false
	default:
		return time.Duration(*seconds) * time.Second, true
	}
}

// budget is the allowed difference from the wanted number of replicas during a rollout.
type budget struct {
	surge       int32 // more Pods
	unavailable int32 // fewer available Pods
}

// budgetOf resolves maxSurge, rounded up, and maxUnavailable, rounded down. If both are zero, one Pod may be
// unavailable, because a rollout could not progress otherwise. Only RollingUpdate has a budget.
func budgetOf(d *appsv1.Deployment) (budget, error) {
	if strategy(d) != appsv1.RollingUpdateDeploymentStrategyType {
		return budget{}, nil
	}
	maxSurge, maxUnavailable := quarter, quarter
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		maxSurge = *intstr.ValueOrDefault(r.MaxSurge, quarter)
		maxUnavailable = *intstr.ValueOrDefault(r.MaxUnavailable, quarter)
	}
	surge, err := scaled("maxSurge", maxSurge, replicas(d), true)
	if err != nil {
		return budget{}, err
	}
	unavailable, err := scaled("maxUnavailable", maxUnavailable, replicas(d), false)
	if err != nil {
		return budget{}, err
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return budget{surge: surge, unavailable: min(unavailable, replicas(d))}, nil
}

func scaled(field string, value intstr.IntOrString, of int32, up bool) (int32, error) {
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, int(of), up)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", field, err)
	case n < 0 || n > math.MaxInt32:
		return 0, fmt.Errorf("%s: %s is out of range", field, value.String())
	}
	return int32(n), nil
}

// errSelectsAll reports a selector that matches every ReplicaSet of the namespace.
var errSelectsAll = errors.New("rollout: the selector is empty and would select all Pods of the namespace")

// check returns an error that no retry can repair. A kube-apiserver refuses most of these Deployments; a server without
// schemas does not.
func check(d *appsv1.Deployment) (labels.Selector, error) {
	if d.Spec.Selector == nil {
		return nil, errors.New("rollout: spec.selector is missing")
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rollout: the selector is invalid: %w", err)
	case selector.Empty():
		return nil, errSelectsAll
	case !selector.Matches(labels.Set(d.Spec.Template.Labels)):
		return nil, fmt.Errorf("rollout: the selector %s does not match the labels of the template", selector)
	case replicas(d) < 0:
		return nil, fmt.Errorf("rollout: spec.replicas is %d; it must not be negative", replicas(d))
	}
	switch s := strategy(d); s {
	case appsv1.RecreateDeploymentStrategyType:
	case appsv1.RollingUpdateDeploymentStrategyType:
		if _, err := budgetOf(d); err != nil {
			return nil, fmt.Errorf("rollout: the strategy is invalid: %w", err)
		}
	default:
		return nil, fmt.Errorf("rollout: unknown strategy %q", s)
	}
	return selector, nil
}
