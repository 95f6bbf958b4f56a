package admission

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/object"
)

const quotaName = resourcequota.PluginName

var quotaResource = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// reservedFor is how long a quota counts an object that was admitted and is not stored. Nearly all are stored at once;
// the others failed.
const reservedFor = time.Second

// quotas enforces ResourceQuotas, and keeps the usage in their status.
type quotas struct {
	*apiadmission.Handler
	factory  *informers.Factory
	registry quota.Registry

	mu       sync.Mutex // guards the fields below, and orders changes of usage
	reserved []reservation
}

// reservation is an object that was admitted and may not be stored yet.
type reservation struct {
	resource schema.GroupVersionResource
	key      api.Key
	uid      string // empty for an update: its usage is corrected when the reservation ends
	until    time.Time
}

func newQuotas(f *informers.Factory) (*quotas, error) {
	config, err := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(f.ForResource), f)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return &quotas{
		Handler: apiadmission.NewHandler(apiadmission.Create, apiadmission.Update),
		factory: f, registry: generic.NewRegistry(config.Evaluators()),
	}, nil
}

// idle reports whether there are no quotas. q may be nil.
func (q *quotas) idle() bool { return q == nil || q.factory.Empty(quotaResource) }

// in returns the quotas of a namespace.
func (q *quotas) in(namespace string) ([]corev1.ResourceQuota, error) {
	if q.idle() {
		return nil, nil
	}
	all, err := q.factory.Core().V1().ResourceQuotas().Lister().ResourceQuotas(namespace).List(labels.Everything())
	out := make([]corev1.ResourceQuota, len(all))
	for i, one := range all {
		out[i] = *one
	}
	return out, err
}

// Validate implements admission.ValidationInterface. It charges the quotas of a namespace for a write.
func (q *quotas) Validate(_ context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	_, ignored := install.DefaultIgnoredResources()[resource]
	if a.GetNamespace() == "" || resource.Resource == "namespaces" || ignored || a.(*request).object == nil {
		return nil
	}
	if have, err := q.in(a.GetNamespace()); err != nil || len(have) == 0 {
		return err
	}
	typed, err := quotaAttributes(a)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	have, err := q.in(a.GetNamespace())
	if err != nil || len(have) == 0 {
		return err
	}
	evaluator := q.evaluator(resource)
	charged, err := resourcequota.CheckRequest(have, typed, evaluator, nil)
	if err != nil || a.IsDryRun() {
		return err
	}
	changed := false
	for i := range charged {
		if !equality.Semantic.DeepEqual(charged[i].Status.Used, have[i].Status.Used) {
			changed = true
			if err := q.write(&charged[i]); err != nil {
				return err
			}
		}
	}
	if changed {
		q.reserve(a)
	}
	return nil
}

// quotaAttributes returns attributes with typed objects, which evaluators need to measure built-in resources.
func quotaAttributes(a apiadmission.Attributes) (apiadmission.Attributes, error) {
	out, err := storedAttributes(a)
	if err != nil || out.GetObject() != nil {
		return out, err
	}
	return a, nil // a custom resource, which is only counted
}

// evaluator returns the evaluator of a resource. Most resources are only counted.
func (q *quotas) evaluator(gr schema.GroupResource) quota.Evaluator {
	if e := q.registry.Get(gr); e != nil {
		return e
	}
	e := generic.NewObjectCountEvaluator(gr, generic.ListResourceUsingListerFunc(
		generic.ListerFuncForResourceFunc(q.factory.ForResource), gr.WithVersion("")), "")
	q.registry.Add(e)
	return e
}

func (q *quotas) reserve(a apiadmission.Attributes) {
	r := reservation{
		resource: a.GetResource(), key: api.Key{Namespace: a.GetNamespace(), Name: a.GetName()}, until: time.Now().Add(reservedFor),
	}
	if a.GetOperation() == apiadmission.Create {
		r.uid = string(a.(*request).object.GetUID())
	}
	q.reserved = append(q.reserved, r)
}

// write stores the status of a quota. The caller holds the lock of q, so only a client can write it at the same time;
// its write stays and the usage is corrected later.
func (q *quotas) write(to *corev1.ResourceQuota) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&to.Status)
	if err != nil {
		return fmt.Errorf("admission: encode the status of a quota: %w", err)
	}
	return q.factory.Write(quotaResource, api.Key{Namespace: to.Namespace, Name: to.Name}, func(tree object.Tree) {
		tree["status"] = status
	})
}
