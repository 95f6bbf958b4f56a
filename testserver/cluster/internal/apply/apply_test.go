package apply_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// owners returns the managers of an object as "name operation version subresource fields".
func owners(t *testing.T, tree object.Tree) []string {
	var out []string
	for _, e := range object.SliceAt(object.Metadata(tree), "managedFields") {
		e := e.(object.Tree)
		out = append(out, fmt.Sprintf("%s %s %s %s%s", e["manager"], e["operation"], e["apiVersion"],
			object.StringAt(e, "subresource"), text(t, e["fieldsV1"])))
	}
	return out
}

const deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  template:
    spec:
      containers: [{name: app, image: one}]
`

func deployments() registry.Managers {
	return apply.Builtin(fieldmanager.Kind{Group: "apps", Kind: "Deployment"})
}

func TestConflicts(t *testing.T) {
	m := deployments()
	me := registry.Manager{Name: "me", Served: "v1"}
	live, err := m.Applied(me, nil, parse(t, deploymentText), false)
	require.NoError(t, err)
	object.Metadata(live)["uid"] = "1"
	require.Equal(t, []string{`me Apply apps/v1 {"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":` +
		`{".":{},"f:image":{},"f:name":{}}}}}}}`}, owners(t, live))

	other := registry.Manager{Name: "other", Served: "v1"}
	config := parse(t, deploymentText)
	object.MapAt(config, "spec")["replicas"] = int64(2)
	_, err = m.Applied(other, live, config, false)
	require.True(t, apierrors.IsConflict(err))
	require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "me": .spec.replicas`)
	taken, err := m.Applied(other, live, config, true)
	require.NoError(t, err)
	require.Equal(t, int64(2), object.MapAt(taken, "spec")["replicas"])
	require.NotContains(t, owners(t, taken)[0], "f:replicas")
	require.Contains(t, owners(t, taken)[1], "f:replicas")
}

func TestOwnersThatGiveUpAFieldRemoveIt(t *testing.T) {
	m := deployments()
	me := registry.Manager{Name: "me", Served: "v1"}
	live := must.Get(m.Applied(me, nil, parse(t, deploymentText), false))(t)
	object.Metadata(live)["uid"] = "1"
	config := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}")
	without := must.Get(m.Applied(me, live, config, false))(t)
	require.Equal(t, object.Tree{"replicas": int64(1)}, without["spec"])

	shared := must.Get(m.Applied(registry.Manager{Name: "other", Served: "v1"}, live, parse(t, deploymentText), false))(t)
	kept := must.Get(m.Applied(me, shared, config, false))(t)
	require.Equal(t, shared["spec"], kept["spec"], "another manager owns the containers")
}

func TestFieldsOutsideTheSchema(t *testing.T) {
	config := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replica: 1}}")
	_, err := deployments().Applied(registry.Manager{Name: "me", Served: "v1"}, nil, config, false)
	require.EqualError(t, err, "failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema")
}

func TestTimesChangeWithContents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := deployments()
		me := registry.Manager{Name: "me", Served: "v1"}
		live := must.Get(m.Applied(me, nil, parse(t, deploymentText), false))(t)
		object.Metadata(live)["uid"] = "1"
		<-time.After(time.Minute)
		same := must.Get(m.Applied(me, live, parse(t, deploymentText), false))(t)
		require.Equal(t, text(t, live), text(t, same))
		same = must.Get(m.Updated(me, live, live))(t)
		require.Equal(t, text(t, live), text(t, same))
	})
}

// TestOldUpdatesAreMerged holds the limit of kube-apiserver: ten entries of updates.
func TestOldUpdatesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := apply.Builtin(fieldmanager.Kind{Kind: "ConfigMap"})
		live := must.Get(m.Updated(registry.Manager{Name: "m00", Served: "v1"}, nil,
			parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {m00: a}}")))(t)
		object.Metadata(live)["uid"] = "1"
		for i := 1; i < 13; i++ {
			<-time.After(time.Second)
			after := parse(t, text(t, live))
			object.MapAt(after, "data")[fmt.Sprintf("m%02d", i)] = "a"
			live = must.Get(m.Updated(registry.Manager{Name: fmt.Sprintf("m%02d", i), Served: "v1"}, live, after))(t)
		}
		all := owners(t, live)
		require.Len(t, all, 10)
		require.Equal(t, `ancient-changes Update v1 {"f:data":{".":{},"f:m00":{},"f:m01":{},"f:m02":{},"f:m03":{}}}`, all[0])
	})
}

const widgetText = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              atoms: {type: array, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    schema: *schema
`

func widgets(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(widgetText), crd))
	return crd
}

func TestCustomResources(t *testing.T) {
	m := apply.Custom(widgets(t), nil)
	me := registry.Manager{Name: "me", Served: "v1"}
	live, err := m.Applied(me, nil, parse(t, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1, tags: [a], atoms: [a], parts: [{name: x, count: 1}]}
status: {ignored: true}
`), false)
	require.NoError(t, err)
	require.Equal(t, []string{`me Apply example.com/v1 {"f:spec":{"f:atoms":{},"f:parts":{"k:{\"name\":\"x\"}":` +
		`{".":{},"f:count":{},"f:name":{}}},"f:size":{},"f:tags":{"v:\"a\"":{}}}}`}, owners(t, live))
	object.Metadata(live)["uid"] = "1"

	// Another version has the same owners, and lists are merged by their types.
	second := registry.Manager{Name: "second", Served: "v2"}
	converted := parse(t, text(t, live))
	converted["apiVersion"] = "example.com/v2"
	both, err := m.Applied(second, converted, parse(t, `
apiVersion: example.com/v2
kind: Widget
metadata: {name: w}
spec: {tags: [b], parts: [{name: z, count: 2}]}
`), false)
	require.NoError(t, err)
	require.Equal(t, `{"atoms":["a"],"parts":[{"count":1,"name":"x"},{"count":2,"name":"z"}],"size":1,"tags":["a","b"]}`, text(t, both["spec"]))
	require.Len(t, owners(t, both), 2)
	_, err = m.Applied(second, converted, parse(t, "{apiVersion: example.com/v2, kind: Widget, metadata: {name: w}, spec: {size: 2, atoms: [b]}}"), false)
	require.EqualError(t, err, "Apply failed with 2 conflicts: conflicts with \"me\":\n- .spec.atoms\n- .spec.size")
}

// TestFailedConversions keeps the managers of an object when its conversion fails, because the next one may work.
func TestFailedConversions(t *testing.T) {
	fails := func(object.Tree, string) (object.Tree, error) { return nil, fmt.Errorf("unreachable") }
	m := apply.Custom(widgets(t), fails)
	live := must.Get(m.Updated(registry.Manager{Name: "me", Served: "v1"}, nil,
		parse(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")))(t)
	object.Metadata(live)["uid"] = "1"
	after := parse(t, "{apiVersion: example.com/v2, kind: Widget, metadata: {name: w, uid: '1'}, spec: {size: 2}}")
	converted := parse(t, text(t, live))
	converted["apiVersion"] = "example.com/v2"
	got := must.Get(m.Updated(registry.Manager{Name: "other", Served: "v2"}, converted, after))(t)
	require.Equal(t, owners(t, live), owners(t, got))
	require.Equal(t, int64(2), object.MapAt(got, "spec")["size"])
}
