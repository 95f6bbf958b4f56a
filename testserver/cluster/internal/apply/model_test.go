package apply_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// model is the field manager as kube-apiserver configures it, with Go types and internal versions.
type model struct {
	kind     schema.GroupKind
	resets   map[string]map[fieldpath.APIVersion]fieldpath.Filter
	types    managedfields.TypeConverter
	managers map[registry.Manager]*managedfields.FieldManager
}

func newModel(t *testing.T, kind schema.GroupKind, resets map[string]map[fieldpath.APIVersion]fieldpath.Filter, versions ...string) *model {
	schemas := map[string]*spec.Schema{}
	for _, v := range versions {
		found := must.Get(openapi.Schemas(kind.WithVersion(v)))(t)
		for name, s := range found {
			schemas[name] = s
		}
	}
	types := must.Get(managedfields.NewTypeConverter(schemas, false))(t)
	return &model{kind: kind, resets: resets, types: types, managers: map[registry.Manager]*managedfields.FieldManager{}}
}

func (m *model) manager(t *testing.T, by registry.Manager) *managedfields.FieldManager {
	s := legacyscheme.Scheme
	by.Name = ""
	if m.managers[by] == nil {
		made := must.Get(managedfields.NewDefaultFieldManager(m.types, s, s, s, m.kind.WithVersion(by.Served),
			m.kind.WithVersion(runtime.APIVersionInternal).GroupVersion(), by.Subresource,
			m.resets[by.Subresource]))(t)
		m.managers[by] = made
	}
	return m.managers[by]
}

// internal returns an object in the internal version, with defaults. Without a tree, it returns an empty one in the
// served version, as the handlers of kube-apiserver make it.
func (m *model) internal(t *testing.T, tree object.Tree, served string) runtime.Object {
	s := legacyscheme.Scheme
	if tree == nil {
		o := must.Get(s.New(m.kind.WithVersion(served)))(t)
		o.GetObjectKind().SetGroupVersionKind(m.kind.WithVersion(served))
		return o
	}
	o := must.Get(s.New(m.kind.WithVersion(served)))(t)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree, o))
	s.Default(o)
	out := must.Get(s.ConvertToVersion(o, m.kind.WithVersion(runtime.APIVersionInternal).GroupVersion()))(t)
	return out
}

// decoded returns a tree as the server decodes it: with defaults and the fields that Go types always write.
func (m *model) decoded(t *testing.T, tree object.Tree, served string) object.Tree {
	return m.tree(t, m.internal(t, tree, served), served)
}

func (m *model) tree(t *testing.T, o runtime.Object, served string) object.Tree {
	out := must.Get(legacyscheme.Scheme.ConvertToVersion(o, m.kind.WithVersion(served).GroupVersion()))(t)
	tree := must.Get(object.From(out))(t)
	return tree
}

// scenario is a kind, and values that its fields may have.
type scenario struct {
	kind     schema.GroupKind
	versions []string
	resets   map[string]map[fieldpath.APIVersion]fieldpath.Filter
	fields   []string // YAML of one field each, in every version
	required string   // YAML of an object in the first version
}

func scenarios() []scenario {
	status := func(version string) map[string]map[fieldpath.APIVersion]fieldpath.Filter {
		return map[string]map[fieldpath.APIVersion]fieldpath.Filter{
			"":       {fieldpath.APIVersion(version): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))},
			"status": {fieldpath.APIVersion(version): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))},
		}
	}
	return []scenario{
		{
			kind: schema.GroupKind{Kind: "Pod"}, versions: []string{"v1"}, resets: status("v1"),
			fields: []string{
				"{metadata: {labels: {a: '1'}}}", "{metadata: {labels: {a: '2', b: '1'}}}", "{metadata: {finalizers: [x/y]}}",
				"{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: o, uid: u}]}}",
				"{spec: {nodeSelector: {disk: ssd}}}", "{spec: {containers: [{name: a, image: i}]}}",
				"{spec: {containers: [{name: b, image: i, ports: [{containerPort: 80}], env: [{name: E, value: v}]}]}}",
				"{spec: {containers: [{name: a, image: j, args: [one, two]}, {name: b, image: i}]}}",
				"{spec: {tolerations: [{key: k, operator: Exists}]}}", "{spec: {volumes: [{name: v, emptyDir: {}}]}}",
				"{spec: {securityContext: {runAsUser: 5}}}", "{spec: {hostNetwork: true}}",
				"{status: {phase: Running, podIPs: [{ip: 1.2.3.4}]}}",
				"{status: {conditions: [{type: Ready, status: 'True'}]}}",
			},
			required: "{metadata: {name: x, namespace: ns}, spec: {containers: [{name: a, image: i}]}}",
		},
		{
			kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, versions: []string{"v1"}, resets: status("apps/v1"),
			fields: []string{
				"{metadata: {annotations: {a: '1'}}}", "{spec: {replicas: 1}}", "{spec: {replicas: 2}}", "{spec: {paused: true}}",
				"{spec: {selector: {matchLabels: {a: b}}}}", "{spec: {template: {metadata: {labels: {a: b}}}}}",
				"{spec: {template: {spec: {containers: [{name: a, image: i}]}}}}", "{spec: {strategy: {type: Recreate}}}",
				"{spec: {template: {spec: {containers: [{name: a, image: j, command: [c]}, {name: z, image: i}]}}}}",
				"{status: {replicas: 3}}", "{status: {conditions: [{type: Available, status: 'True'}]}}",
			},
			required: "{metadata: {name: x, namespace: ns}, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}",
		},
		{
			kind: schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, versions: []string{"v2", "v1"},
			fields: []string{
				"{metadata: {labels: {a: '1'}}}", "{spec: {maxReplicas: 3}}", "{spec: {maxReplicas: 4, minReplicas: 2}}",
				"{spec: {scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}",
				"{spec: {scaleTargetRef: {kind: Deployment, name: e}}}",
			},
			required: "{metadata: {name: x, namespace: ns}, spec: {maxReplicas: 1, scaleTargetRef: {kind: Deployment, name: d}}}",
		},
		{
			kind: schema.GroupKind{Kind: "Service"}, versions: []string{"v1"}, resets: status("v1"),
			fields: []string{
				"{spec: {selector: {a: b}}}", "{spec: {selector: {a: c}}}", "{spec: {type: NodePort}}",
				"{spec: {ports: [{port: 80}]}}", "{spec: {ports: [{port: 80, protocol: UDP, name: u}, {port: 80, name: t}]}}",
				"{spec: {externalIPs: [1.2.3.4]}}",
			},
			required: "{metadata: {name: x, namespace: ns}, spec: {ports: [{port: 80, name: t}]}}",
		},
	}
}

// TestModel does the same random writes with trees and with the field manager of kube-apiserver.
func TestModel(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.kind.Kind, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) { compareWithModel(t, s, seed) })
			}
		})
	}
}

func compareWithModel(t *testing.T, s scenario, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	theirs := newModel(t, s.kind, s.resets, s.versions...)
	ours := apply.Builtin(fieldmanager.Kind{Group: s.kind.Group, Kind: s.kind.Kind, Resets: s.resets})
	var live object.Tree // in the first version
	conflicts, writes := 0, 0
	for i := range 25 {
		<-time.After(time.Duration(r.IntN(3)) * time.Second)
		served := s.versions[r.IntN(len(s.versions))]
		by := registry.Manager{Name: fmt.Sprintf("m%d", r.IntN(14)), Served: served}
		if r.IntN(10) == 0 {
			by.Name = "kubectl"
		}
		if s.resets["status"] != nil && live != nil && r.IntN(3) == 0 {
			by.Subresource = "status"
		}
		current := live
		if live != nil && served != s.versions[0] {
			current = theirs.decodedAs(t, live, s.versions[0], served)
		}
		config := parse(t, "{}")
		for range 1 + r.IntN(3) {
			config = merged(config, parse(t, s.fields[r.IntN(len(s.fields))])).(object.Tree)
		}
		var got object.Tree
		var gotErr, wantErr error
		var want runtime.Object
		if r.IntN(2) == 0 && live != nil || live == nil && r.IntN(4) == 0 { // apply
			config["apiVersion"], config["kind"] = s.kind.WithVersion(served).GroupVersion().String(), s.kind.Kind
			object.Metadata(config)["name"], object.Metadata(config)["namespace"] = "x", "ns"
			force := r.IntN(2) == 0
			before := text(t, config) + text(t, current)
			got, gotErr = ours.Applied(by, current, config, force)
			require.Equal(t, before, text(t, config)+text(t, current), "inputs changed")
			want, wantErr = theirs.manager(t, by).Apply(theirs.internal(t, current, served),
				&unstructured.Unstructured{Object: parse(t, text(t, config))}, by.Name, force)
		} else {
			from := s.required
			if current != nil {
				from = text(t, current)
			}
			after := parse(t, from)
			after = merged(after, config).(object.Tree)
			if r.IntN(4) == 0 {
				delete(object.MapAt(after, "metadata"), "labels")
				delete(object.MapAt(after, "spec"), "nodeSelector")
			}
			if r.IntN(15) == 0 {
				object.Metadata(after)["managedFields"] = []any{object.Tree{}}
			}
			after = theirs.decoded(t, after, served)
			before := text(t, after) + text(t, current)
			got, gotErr = ours.Updated(by, current, after)
			require.Equal(t, before, text(t, after)+text(t, current), "inputs changed")
			want, wantErr = theirs.manager(t, by).Update(theirs.internal(t, current, served), theirs.internal(t, after, served), by.Name)
		}
		step := fmt.Sprintf("seed %d, step %d, %+v: %s", seed, i, by, text(t, config))
		if wantErr != nil {
			require.Error(t, gotErr, step)
			require.Equal(t, wantErr.Error(), gotErr.Error(), step)
			require.Equal(t, apierrors.ReasonForError(wantErr), apierrors.ReasonForError(gotErr))
			conflicts++
			continue
		}
		require.NoError(t, gotErr, step)
		require.Equal(t, text(t, theirs.tree(t, want, served)), text(t, theirs.decoded(t, got, served)), step)
		live = theirs.tree(t, want, s.versions[0])
		accessor := must.Get(meta.Accessor(want))(t)
		if accessor.GetUID() == "" {
			object.Metadata(live)["uid"] = "1"
		}
		writes++
	}
	require.NotZero(t, writes)
	t.Logf("seed %d: %d writes, %d conflicts", seed, writes, conflicts)
}

// decodedAs converts a tree.
func (m *model) decodedAs(t *testing.T, tree object.Tree, from, to string) object.Tree {
	return m.tree(t, m.internal(t, tree, from), to)
}

// merged returns a with the contents of b. Lists are replaced.
func merged(a, b any) any {
	into, ok := a.(object.Tree)
	from, too := b.(object.Tree)
	if !ok || !too {
		return b
	}
	for name, value := range from {
		into[name] = merged(into[name], value)
	}
	return into
}
