package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	flowcontrol "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/rbac"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Options say which objects there are.
type Options struct {
	RBAC bool // the roles and bindings too
}

// prepared is an object without what differs between servers: UID, version and times.
type prepared struct {
	resource  schema.GroupResource
	tree      object.Tree
	managers  []object.Tree // of managedFields, without times
	condition object.Tree   // of the status, without its time; nil: none
}

// Install stores the objects, as the next versions of a new server. Like a server that was restarted, it has no history
// then. The returned function reports whether an object is one of them.
func Install(s *store.Store, o Options) (installed func(schema.GroupResource, api.Key) bool, err error) {
	all, err := base()
	if err != nil {
		return nil, err
	}
	if o.RBAC {
		more, err := roles()
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, more)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	s.Lock()
	defer s.Unlock()
	for i := range all {
		p := &all[i]
		if _, err := s.Put(s.Collection(p.resource), nil, p.at(now, s.NewUID())); err != nil {
			return nil, fmt.Errorf("bootstrap: %v %v: %w", p.resource, object.Metadata(p.tree)["name"], err)
		}
	}
	s.Compact()
	return func(resource schema.GroupResource, key api.Key) bool {
		return slices.ContainsFunc(all, func(p prepared) bool {
			meta := object.Metadata(p.tree)
			return p.resource == resource && key == api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
		})
	}, nil
}

// at returns the object as a server creates it at a time.
func (p *prepared) at(now, uid string) object.Tree {
	tree, meta := maps.Clone(p.tree), maps.Clone(object.Metadata(p.tree))
	managers := make([]any, len(p.managers))
	for i, m := range p.managers {
		m = maps.Clone(m)
		m["time"] = now
		managers[i] = m
	}
	meta["uid"], meta["creationTimestamp"], meta["managedFields"] = uid, now, managers
	tree["metadata"] = meta
	if p.condition != nil {
		condition := maps.Clone(p.condition)
		condition["lastTransitionTime"] = now
		tree["status"] = object.Tree{"conditions": []any{condition}}
	}
	return tree
}

// prepare converts an object of a built-in type.
func prepare(resource, manager string, obj runtime.Object) (prepared, error) {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return prepared{}, fmt.Errorf("bootstrap: %w", err)
	}
	obj = obj.DeepCopyObject()
	legacyscheme.Scheme.Default(obj)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return prepared{}, fmt.Errorf("bootstrap: %w", err)
	}
	delete(tree, "kind")
	delete(tree, "apiVersion")
	p := prepared{resource: schema.GroupResource{Group: kinds[0].Group, Resource: resource}, tree: tree}
	p.managers = []object.Tree{updated(manager, kinds[0].GroupVersion(), fieldsOf(tree))}
	return p, nil
}

// list collects prepared objects until the first error.
type list struct {
	all []prepared
	err error
}

// add prepares an object and returns it for changes.
func (l *list) add(resource, manager string, obj runtime.Object) *prepared {
	p, err := prepare(resource, manager, obj)
	if l.err == nil {
		l.err = err
	}
	l.all = append(l.all, p)
	return &l.all[len(l.all)-1]
}

const (
	server   = "kube-apiserver"
	producer = "api-priority-and-fairness-config-producer-v1"
	consumer = "api-priority-and-fairness-config-consumer-v1"
)

var flowControl = schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}

// base prepares the objects of every server.
var base = sync.OnceValues(func() ([]prepared, error) {
	l := &list{}
	for _, s := range services {
		p := l.add("apiservices", server, Local(s.gv, s.group, s.version, OnStart))
		p.condition = Available()
	}
	for _, c := range scheduling.SystemPriorityClasses() {
		object.Metadata(l.add("priorityclasses", server, c).tree)["generation"] = int64(1)
	}
	for _, c := range slices.Concat(flowcontrol.MandatoryPriorityLevelConfigurations, flowcontrol.SuggestedPriorityLevelConfigurations) {
		p := l.add("prioritylevelconfigurations", producer, autoupdated(c.DeepCopy()))
		object.Metadata(p.tree)["generation"] = int64(1)
	}
	for _, f := range slices.Concat(flowcontrol.MandatoryFlowSchemas, flowcontrol.SuggestedFlowSchemas) {
		p := l.add("flowschemas", producer, autoupdated(f.DeepCopy()))
		object.Metadata(p.tree)["generation"] = int64(1)
		p.condition = object.Tree{
			"type": "Dangling", "status": "False", "reason": "Found",
			"message": fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists",
				f.Spec.PriorityLevelConfiguration.Name),
		}
		p.managers = append(p.managers, applied(consumer, flowControl, p.condition))
	}
	l.addNetwork()
	return l.all, l.err
})

// roles prepares the roles and bindings.
var roles = sync.OnceValues(func() ([]prepared, error) {
	l := &list{}
	for _, o := range rbac.Bootstrap() {
		l.add(rbac.Plural(o), server, o)
	}
	return l.all, l.err
})

// autoupdated adds the annotation of the objects that kube-apiserver keeps as they are.
func autoupdated[T interface {
	metav1.Object
	runtime.Object
}](o T) T {
	o.SetAnnotations(map[string]string{"apf.kubernetes.io/autoupdate-spec": "true"})
	return o
}
