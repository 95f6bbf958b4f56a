package rbac_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/rbac"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

var (
	roles           = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Plural: "roles", Namespaced: true}
	bindings        = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding", Plural: "rolebindings", Namespaced: true}
	clusterRoles    = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Plural: "clusterroles"}
	clusterBindings = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Plural: "clusterrolebindings"}
)

// world has the objects of a server, and its policy.
type world struct {
	*testing.T
	server *testserver.Server
	policy *rbac.Policy
}

func newWorld(t *testing.T) *world {
	t.Helper()
	factory := informers.New()
	server := testserver.NewExtended(testserver.Options{}, extension.Extension{
		Connect: factory.Connect, Resources: builtin.Resources(),
	})
	return &world{T: t, server: server, policy: rbac.New(factory)}
}

func tree(t *testing.T, r api.Resource, body string) object.Tree {
	t.Helper()
	out := must.Get(object.Decode([]byte(body)))(t)
	out["kind"], out["apiVersion"] = r.Kind, r.GroupVersion().String()
	return out
}

func (w *world) make(r api.Resource, body string) {
	w.Helper()
	u := &unstructured.Unstructured{Object: tree(w.T, r, body)}
	if r.Namespaced {
		u.SetNamespace("default")
	}
	must.Get(w.server.Create(r, u))(w)
}

// write returns the error of a write by ann.
func (w *world) write(r api.Resource, before, after string, groups ...string) string {
	w.Helper()
	a := &extension.Attributes{
		Resource: &registry.Definition{Settings: registry.Settings{Resource: r}}, Group: r.Group, Served: r.Version, Plural: r.Plural,
		Verb: "create", User: registry.User{Name: "ann", Groups: groups}, Object: tree(w.T, r, after),
	}
	a.Key.Name = object.StringAt(object.Metadata(a.Object), "name")
	if r.Namespaced {
		a.Key.Namespace = "default"
	}
	if before != "" {
		a.Verb, a.Old = "update", tree(w.T, r, before)
	}
	if err := w.policy.CheckEscalation(context.Background(), a); err != nil {
		return err.Error()
	}
	return ""
}

const (
	roleRef  = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":`
	toAnn    = `"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}],`
	getPods  = `{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`
	getNodes = `{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}`
)

func TestEscalation(t *testing.T) {
	w := newWorld(t)
	w.make(clusterRoles, `{"metadata":{"name":"pods"},"rules":[`+getPods+`]}`)
	w.make(clusterRoles, `{"metadata":{"name":"nodes"},"rules":[`+getNodes+`]}`)
	w.make(clusterBindings, `{"metadata":{"name":"ann"},`+toAnn+roleRef+`"pods"}}`)

	require.Empty(t, w.write(clusterRoles, "", `{"metadata":{"name":"x"},"rules":[`+getPods+`]}`))
	refused := `clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "ann" (groups=["dev"]) is attempting to grant RBAC ` +
		"permissions not currently held:\n" + `{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}`
	require.Equal(t, refused, w.write(clusterRoles, "", `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`, "dev"))
	require.Equal(t, refused, w.write(clusterRoles, `{"metadata":{"name":"x"}}`, `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`, "dev"))
	require.Empty(t, w.write(clusterRoles, "", `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`, "system:masters"))
	require.Empty(t, w.write(clusterRoles, `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`,
		`{"metadata":{"name":"x","finalizers":["a/b"]},"rules":[`+getNodes+`]}`), "the garbage collector changes finalizers")
	require.Contains(t, w.write(clusterRoles, "", `{"metadata":{"name":"x"},"aggregationRule":{"clusterRoleSelectors":[{}]}}`),
		"must have cluster-admin privileges to use the aggregationRule")

	require.Empty(t, w.write(bindings, "", `{"metadata":{"name":"b"},`+toAnn+roleRef+`"pods"}}`))
	require.Contains(t, w.write(bindings, "", `{"metadata":{"name":"b"},`+toAnn+roleRef+`"nodes"}}`), "not currently held")
	require.Contains(t, w.write(clusterBindings, "", `{"metadata":{"name":"b"},`+toAnn+roleRef+`"none"}}`), `"none" not found`)

	w.make(clusterRoles, `{"metadata":{"name":"powers"},"rules":[
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["bind"],"resourceNames":["nodes"]},
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["escalate"]}]}`)
	w.make(clusterBindings, `{"metadata":{"name":"powers"},`+toAnn+roleRef+`"powers"}}`)
	require.Empty(t, w.write(bindings, "", `{"metadata":{"name":"b"},`+toAnn+roleRef+`"nodes"}}`), "bind")
	require.Empty(t, w.write(clusterRoles, "", `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`), "escalate")
	require.Contains(t, w.write(roles, "", `{"metadata":{"name":"x"},"rules":[`+getNodes+`]}`), "not currently held", "escalate of roles is another right")
}

func TestAggregation(t *testing.T) {
	rule := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}
	}
	role := func(name string, labels map[string]string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rules}
	}
	view := role("a-view", map[string]string{"to": "edit"})
	view.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": "view"}}}}
	edit := role("edit", nil, rule("forged"))
	edit.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": "edit"}}}}
	all := []*rbacv1.ClusterRole{
		edit, view, role("z", map[string]string{"to": "view"}, rule("pods")),
		role("y", map[string]string{"to": "view"}, rule("nodes"), rule("pods")), role("other", nil, rule("secrets")),
	}
	changed := rbac.Aggregated(all)
	require.Len(t, changed, 2)
	require.Empty(t, changed[0].Rules, "view has no rules yet, and nobody else selects the forged ones")
	require.Equal(t, []rbacv1.PolicyRule{rule("nodes"), rule("pods")}, changed[1].Rules)
	require.Empty(t, view.Rules, "the arguments do not change")
	all[0], all[1] = changed[0], changed[1]
	changed = rbac.Aggregated(all)
	require.Len(t, changed, 1)
	require.Equal(t, all[1].Rules, changed[0].Rules)
	all[0] = changed[0]
	require.Empty(t, rbac.Aggregated(all))
}

func TestRunAggregates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.policy.Run(ctx) }()
		w.make(clusterRoles, `{"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"all"}}]},"rules":null}`)
		w.make(clusterRoles, `{"metadata":{"name":"pods","labels":{"to":"all"}},"rules":[`+getPods+`]}`)
		synctest.Wait()
		all, err := w.server.Get(clusterRoles, api.Key{Name: "all"})
		require.NoError(t, err)
		rules, _, err := unstructured.NestedSlice(all.Object, "rules")
		require.NoError(t, err)
		require.Len(t, rules, 1)
		require.NoError(t, w.server.Delete(clusterRoles, api.Key{Name: "pods"}))
		synctest.Wait()
		all, err = w.server.Get(clusterRoles, api.Key{Name: "all"})
		require.NoError(t, err)
		require.Nil(t, all.Object["rules"])
		cancel()
		require.NoError(t, <-done)
	})
}

func TestBootstrapRolesAreComplete(t *testing.T) {
	w := newWorld(t)
	var names []string
	for _, o := range rbac.Bootstrap() {
		encoded := must.Get(json.Marshal(o))(t)
		r := clusterBindings
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			r = clusterRoles
			names = append(names, o.Name)
			require.NotEmpty(t, o.Rules, o.Name)
		case *rbacv1.Role:
			r = roles
		case *rbacv1.RoleBinding:
			r = bindings
		}
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(encoded, &u.Object))
		must.Get(w.server.Create(r, u))(t)
	}
	for _, name := range []string{"admin", "edit", "view", "cluster-admin", "system:discovery", "system:controller:job-controller"} {
		require.True(t, slices.Contains(names, name), name)
	}
}
