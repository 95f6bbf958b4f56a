package apiclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// recorded is the request that a handler got.
type recorded struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         string
}

// recorder records the last request and answers with body, or with a pod if body is empty.
func recorder(into *recorded, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*into = recorded{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header, Body: string(b)}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func TestVerbsOnTheWire(t *testing.T) {
	var got recorded
	cfg := onLoopback(t, recorder(&got, onePod))
	cfg.Host += "/base/"
	all := pods(t, cfg)
	mine := apiclient.NewTyped[*corev1.Pod](newClient(t, cfg), podResource, "default")
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "6"}}
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	background := metav1.DeletePropagationBackground
	uid := types.UID("u1")

	cases := []struct {
		name   string
		call   func(ctx context.Context) error
		method string
		path   string
		query  string
		header map[string]string
		body   string // as JSON: the members that are named here must be equal; empty if there is no body
	}{
		{"get", func(ctx context.Context) error {
			return must.Err(all.Get(ctx, web, metav1.GetOptions{}))
		}, "GET", "/base/api/v1/namespaces/default/pods/web", "", map[string]string{"Accept-Encoding": "gzip"}, ""},
		{"get at a version", func(ctx context.Context) error {
			return must.Err(mine.Get(ctx, api.Key{Name: "web"}, metav1.GetOptions{ResourceVersion: "0"}))
		}, "GET", "/base/api/v1/namespaces/default/pods/web", "resourceVersion=0", nil, ""},
		{"create", func(ctx context.Context) error {
			return must.Err(all.Create(ctx, object, metav1.CreateOptions{DryRun: []string{"All"}, FieldManager: "leat", FieldValidation: "Strict"}))
		}, "POST", "/base/api/v1/namespaces/default/pods", "dryRun=All&fieldManager=leat&fieldValidation=Strict", map[string]string{"Content-Type": "application/json"}, `{"apiVersion":"v1","kind":"Pod"}`},
		{"create in the client's namespace", func(ctx context.Context) error {
			return must.Err(mine.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{}))
		}, "POST", "/base/api/v1/namespaces/default/pods", "", nil, `{"apiVersion":"v1","kind":"Pod"}`},
		{"update", func(ctx context.Context) error {
			return must.Err(all.Update(ctx, object, metav1.UpdateOptions{FieldManager: "leat"}))
		}, "PUT", "/base/api/v1/namespaces/default/pods/web", "fieldManager=leat", map[string]string{"Content-Type": "application/json"}, `{"kind":"Pod"}`},
		{"update of a name", func(ctx context.Context) error {
			return must.Err(mine.Update(ctx, named, metav1.UpdateOptions{}))
		}, "PUT", "/base/api/v1/namespaces/default/pods/web", "", nil, `{"kind":"Pod"}`},
		{"update status", func(ctx context.Context) error {
			return must.Err(all.UpdateStatus(ctx, object, metav1.UpdateOptions{}))
		}, "PUT", "/base/api/v1/namespaces/default/pods/web/status", "", nil, `{"kind":"Pod"}`},
		{"JSON patch", func(ctx context.Context) error {
			p := must.Get(apiclient.JSONPatch(apiclient.JSONPatchOperation{Op: "remove", Path: "/spec/nodeName"}))(t)
			_, err := all.Patch(ctx, web, p, apiclient.PatchOptions{})
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web", "", map[string]string{"Content-Type": "application/json-patch+json"}, `[{"op":"remove","path":"/spec/nodeName"}]`},
		{"merge patch of the status", func(ctx context.Context) error {
			p := must.Get(apiclient.MergePatch(map[string]any{"status": nil}))(t)
			o := apiclient.PatchOptions{Subresource: "status"}
			o.FieldManager = "leat"
			_, err := all.Patch(ctx, web, p, o)
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web/status", "fieldManager=leat", map[string]string{"Content-Type": "application/merge-patch+json"}, `{"status":null}`},
		{"strategic patch", func(ctx context.Context) error {
			p := must.Get(apiclient.StrategicPatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}}))(t)
			o := apiclient.PatchOptions{}
			o.DryRun = []string{"All"}
			_, err := all.Patch(ctx, web, p, o)
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web", "dryRun=All", map[string]string{"Content-Type": "application/strategic-merge-patch+json"}, `{"metadata":{"labels":{"a":"b"}}}`},
		{"apply patch", func(ctx context.Context) error {
			o := apiclient.PatchOptions{}
			o.FieldManager, o.Force = "leat", true
			_, err := all.Patch(ctx, web, apiclient.Patch{Type: types.ApplyPatchType, Data: []byte(`{"kind":"Pod"}`)}, o)
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web", "fieldManager=leat&force=true", map[string]string{"Content-Type": "application/apply-patch+yaml"}, `{"kind":"Pod"}`},
		{"apply", func(ctx context.Context) error {
			o := apiclient.ApplyOptions{}
			o.FieldManager, o.Force = "leat", true
			_, err := all.Apply(ctx, web, map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}}, o)
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web", "fieldManager=leat&force=true", map[string]string{"Content-Type": "application/apply-patch+yaml"}, `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"web","namespace":"default"}}`},
		{"apply the status of a typed object", func(ctx context.Context) error {
			o := apiclient.ApplyOptions{Subresource: "status"}
			o.FieldManager = "leat"
			_, err := mine.Apply(ctx, api.Key{Name: "web"}, named, o)
			return err
		}, "PATCH", "/base/api/v1/namespaces/default/pods/web/status", "fieldManager=leat&force=false", nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"}}`},
		{"delete", func(ctx context.Context) error {
			return all.Delete(ctx, web, metav1.DeleteOptions{})
		}, "DELETE", "/base/api/v1/namespaces/default/pods/web", "", nil, `{"apiVersion":"v1","kind":"DeleteOptions"}`},
		{"delete with conditions", func(ctx context.Context) error {
			return all.Delete(ctx, web, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, GracePeriodSeconds: new(int64),
			})
		}, "DELETE", "/base/api/v1/namespaces/default/pods/web", "", nil, `{"kind":"DeleteOptions","preconditions":{"uid":"u1"},"propagationPolicy":"Background","gracePeriodSeconds":0}`},
		{"delete all", func(ctx context.Context) error {
			return mine.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: "a=b,c!=d"})
		}, "DELETE", "/base/api/v1/namespaces/default/pods", "labelSelector=a%3Db%2Cc%21%3Dd", nil, `{"propagationPolicy":"Background"}`},
		{"evict", func(ctx context.Context) error {
			_, err := apiclient.Subresource[*policyv1.Eviction, *unstructured.Unstructured](all.Client(), podResource, web, "eviction").
				Create(ctx, &policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
			return err
		}, "POST", "/base/api/v1/namespaces/default/pods/web/eviction", "", nil, `{"apiVersion":"policy/v1","kind":"Eviction"}`},
		{"get scale", func(ctx context.Context) error {
			return must.Err(apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](all.Client(), deployments, web, "scale").Get(ctx, metav1.GetOptions{}))
		}, "GET", "/base/apis/apps/v1/namespaces/default/deployments/web/scale", "", nil, ""},
		{"update scale", func(ctx context.Context) error {
			_, err := apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](all.Client(), deployments, web, "scale").
				Update(ctx, &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}, metav1.UpdateOptions{})
			return err
		}, "PUT", "/base/apis/apps/v1/namespaces/default/deployments/web/scale", "", nil, `{"spec":{"replicas":3}}`},
		{"of no namespace", func(ctx context.Context) error {
			_, err := apiclient.NewPartial[*pod](all.Client(), nodeResource, "").Get(ctx, api.Key{Name: "system:a b?c#d"}, metav1.GetOptions{})
			return errKind(err)
		}, "GET", "/base/api/v1/nodes/system:a b?c#d", "", nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got = recorded{}
			require.NoError(t, c.call(t.Context()))
			require.Equal(t, c.method, got.Method)
			require.Equal(t, c.path, got.Path)
			require.Equal(t, must.Get(url.ParseQuery(c.query))(t), got.Query)
			require.Contains(t, got.Header.Get("Accept"), "application/json")
			for k, v := range c.header {
				require.Equal(t, v, got.Header.Get(k), k)
			}
			if c.body == "" {
				require.Empty(t, got.Body)
				return
			}
			requirePart(t, c.body, got.Body)
		})
	}
}

// errKind ignores that the recorder answers with a pod where a node was requested.
func errKind(err error) error {
	if err != nil && err.Error() == `get nodes system:a b?c#d: read the answer: codec: asked for nodes (kind "Node" of "v1") and was answered with kind "Pod" of "v1"` {
		return nil
	}
	return err
}

// requirePart checks that got has everything in want.
func requirePart(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	require.NoError(t, json.Unmarshal([]byte(want), &w))
	require.NoError(t, json.Unmarshal([]byte(got), &g), got)
	wm, ok := w.(map[string]any)
	if !ok {
		require.Equal(t, w, g)
		return
	}
	gm, ok := g.(map[string]any)
	require.True(t, ok)
	for k, v := range wm {
		require.Equal(t, v, gm[k], k)
	}
}

func TestApplyOfATypedObjectClaimsNoTimestamp(t *testing.T) {
	var got recorded
	mine := apiclient.NewTyped[*corev1.Pod](newClient(t, onLoopback(t, recorder(&got, onePod))), podResource, "default")
	o := apiclient.ApplyOptions{}
	o.FieldManager = "leat"
	must.Get(mine.Apply(t.Context(), web, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, o))(t)
	require.NotContains(t, got.Body, "creationTimestamp")
}

// TestMisuseSendsNoRequest has errors that need no server.
func TestMisuseSendsNoRequest(t *testing.T) {
	var got recorded
	cfg := onLoopback(t, recorder(&got, onePod))
	all := pods(t, cfg)
	mine := apiclient.NewTyped[*corev1.Pod](all.Client(), podResource, "default")
	nodes := apiclient.NewTyped[*corev1.Node](all.Client(), nodeResource, "default")
	inOther := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"}}
	manager := apiclient.ApplyOptions{}
	manager.FieldManager = "leat"

	cases := []struct {
		name string
		call func(ctx context.Context) error
		want string
	}{
		{"get without namespace", func(ctx context.Context) error {
			return must.Err(all.Get(ctx, api.Key{Name: "web"}, metav1.GetOptions{}))
		}, "get pods web: apiclient: pods need a namespace"},
		{"get from another namespace", func(ctx context.Context) error {
			return must.Err(mine.Get(ctx, api.Key{Namespace: "other", Name: "web"}, metav1.GetOptions{}))
		}, `get pods other/web: apiclient: the object has the namespace "other", but the client has the namespace "default"`},
		{"get without name", func(ctx context.Context) error {
			return must.Err(mine.Get(ctx, api.Key{}, metav1.GetOptions{}))
		}, "the name is empty"},
		{"get of a path", func(ctx context.Context) error {
			return must.Err(mine.Get(ctx, api.Key{Name: "../nodes"}, metav1.GetOptions{}))
		}, `the name "../nodes" is not valid in a path`},
		{"get of dots", func(ctx context.Context) error {
			return must.Err(mine.Get(ctx, api.Key{Name: ".."}, metav1.GetOptions{}))
		}, `the name ".." is not valid in a path`},
		{"namespace of a path", func(ctx context.Context) error {
			return must.Err(all.Get(ctx, api.Key{Namespace: "a/b", Name: "web"}, metav1.GetOptions{}))
		}, `the namespace "a/b" is not valid in a path`},
		{"create in another namespace", func(ctx context.Context) error {
			return must.Err(mine.Create(ctx, inOther, metav1.CreateOptions{}))
		}, "but the client has the namespace"},
		{"create without namespace", func(ctx context.Context) error {
			return must.Err(all.Create(ctx, &corev1.Pod{}, metav1.CreateOptions{}))
		}, "pods need a namespace"},
		{"update in another namespace", func(ctx context.Context) error {
			return must.Err(mine.Update(ctx, inOther, metav1.UpdateOptions{}))
		}, "but the client has the namespace"},
		{"delete without name", func(ctx context.Context) error {
			return mine.Delete(ctx, api.Key{}, metav1.DeleteOptions{})
		}, "the name is empty"},
		{"list of nodes in a namespace", func(ctx context.Context) error {
			return must.Err(nodes.List(ctx, api.Options[*corev1.Node]{}, nil))
		}, `list nodes: apiclient: nodes have no namespace, but the client has the namespace "default"`},
		{"watch of nodes in a namespace", func(ctx context.Context) error {
			for _, err := range nodes.Watch(ctx, api.Options[*corev1.Node]{}) {
				return err
			}
			return nil
		}, `watch nodes: apiclient: nodes have no namespace`},
		{"apply without field manager", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, map[string]any{}, apiclient.ApplyOptions{}))
		}, "needs a field manager"},
		{"apply patch without field manager", func(ctx context.Context) error {
			return must.Err(mine.Patch(ctx, web, apiclient.Patch{Type: types.ApplyPatchType}, apiclient.PatchOptions{}))
		}, "needs a field manager"},
		{"apply another name", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, manager))
		}, `name is "db" in the object and "web" in the call`},
		{"apply another kind", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, map[string]any{"kind": "Node"}, manager))
		}, `kind is "Node" in the object and "Pod" in the call`},
		{"apply a list", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, []int{1}, manager))
		}, "is not encoded as a JSON object"},
		{"apply odd metadata", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, map[string]any{"metadata": 1}, manager))
		}, "metadata is not a JSON object"},
		{"apply a value that JSON cannot represent", func(ctx context.Context) error {
			return must.Err(mine.Apply(ctx, web, map[string]any{"f": func() {}}, manager))
		}, "unsupported type"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got = recorded{}
			require.ErrorContains(t, c.call(t.Context()), c.want)
			require.Empty(t, got.Method, "nothing was sent")
		})
	}
	require.PanicsWithValue(t, "apiclient: the Client of pods is nil", func() { apiclient.NewPartial[*pod](nil, podResource, "") })
	require.Panics(t, func() { apiclient.NewPartial[*pod](all.Client(), api.Resource{}, "") })
	require.ErrorContains(t, must.Err(apiclient.MergePatch(func() {})), "make a patch of a func()")
}

func TestCredentialsAndHeaders(t *testing.T) {
	var got recorded
	cfg := onLoopback(t, recorder(&got, onePod))
	get := func(change func(*apiclient.Config)) http.Header {
		c := cfg
		change(&c)
		must.Get(pods(t, c).Get(t.Context(), web, metav1.GetOptions{}))(t)
		return got.Header
	}
	require.Empty(t, get(func(*apiclient.Config) {}).Values("Authorization"))
	require.Regexp(t, `^\S+/\S+ \(\w+/\w+\) leat/\S+$`, got.Header.Get("User-Agent"))
	require.Equal(t, []string{"Bearer t"}, get(func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret("t") }).Values("Authorization"))
	require.Equal(t, []string{"Basic dTpwOnA="}, get(func(c *apiclient.Config) { c.Username, c.Password = "u", apiclient.NewSecret("p:p") }).Values("Authorization"))
	require.Equal(t, "mine/1", get(func(c *apiclient.Config) { c.UserAgent = "mine/1" }).Get("User-Agent"))
	require.Equal(t, "identity", get(func(c *apiclient.Config) { c.DisableCompression = true }).Get("Accept-Encoding"))
	h := get(func(c *apiclient.Config) {
		c.Impersonate = apiclient.Impersonate{UserName: "jane", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"Acme.com/Pro%ject": {"x", "y"}}}
	})
	require.Equal(t, "jane", h.Get("Impersonate-User"))
	require.Equal(t, "7", h.Get("Impersonate-Uid"))
	require.Equal(t, []string{"a", "b"}, h.Values("Impersonate-Group"))
	require.Equal(t, []string{"x", "y"}, h.Values("Impersonate-Extra-acme.com%2fpro%25ject"))
}

func TestEqualIdentitiesReadTheSame(t *testing.T) {
	a := newClient(t, apiclient.Config{Host: "https://h"})
	b := newClient(t, apiclient.Config{Host: "https://h"})
	same := apiclient.NewTyped[*corev1.Pod](a, podResource, "").Identity()
	require.Equal(t, same, apiclient.NewPartial[*pod](a, podResource, "").Identity())
	set := map[any]int{same: 1}
	set[apiclient.NewTyped[*corev1.Pod](a, podResource, "default").Identity()]++
	set[apiclient.NewTyped[*corev1.Pod](b, podResource, "").Identity()]++
	set[apiclient.NewTyped[*corev1.Pod](a, nodeResource, "").Identity()]++
	set[apiclient.NewTyped[*corev1.Pod](a, podResource, "").Identity()]++
	require.Len(t, set, 4)
	require.Equal(t, 2, set[same])
}

var (
	_ api.ListerWatcher[*corev1.Pod] = (*apiclient.TypedClient[*corev1.Pod])(nil)
	_ api.ListerWatcher[*pod]        = (*apiclient.PartialClient[*pod])(nil)
)

// TestAPartialClientHasNoWholeObjectWrites checks at run time which methods a PartialClient does not have, so that a
// failure is readable.
func TestAPartialClientHasNoWholeObjectWrites(t *testing.T) {
	var view any = &apiclient.PartialClient[*pod]{}
	_, creates := view.(interface {
		Create(context.Context, *pod, metav1.CreateOptions) (*pod, error)
	})
	_, updates := view.(interface {
		Update(context.Context, *pod, metav1.UpdateOptions) (*pod, error)
	})
	_, updatesStatus := view.(interface {
		UpdateStatus(context.Context, *pod, metav1.UpdateOptions) (*pod, error)
	})
	_, deletes := view.(interface {
		Delete(context.Context, api.Key, metav1.DeleteOptions) error
	})
	require.False(t, creates || updates || updatesStatus)
	require.True(t, deletes)
}

// recorderOf answers with a list and records the Accept header.
func recorderOf(accept *string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*accept = r.Header.Get("Accept")
		answer(200, jsonType, onePodList)(w, r)
	}
}

// TestTheFieldManagerOfTheClient writes with a client that has a field manager. Options with another one take
// precedence, and requests that change no fields have none.
func TestTheFieldManagerOfTheClient(t *testing.T) {
	var got recorded
	cfg := onLoopback(t, recorder(&got, onePod))
	cfg.FieldManager = "mill"
	all := pods(t, cfg)
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "6"}}
	merge := apiclient.Patch{Type: types.MergePatchType, Data: []byte(`{}`)}
	apply := apiclient.Patch{Type: types.ApplyPatchType, Data: []byte(`{"kind":"Pod"}`)}
	sub := apiclient.Subresource[*corev1.Pod, *corev1.Pod](all.Client(), podResource, web, "status")
	for want, calls := range map[string]map[string]func(ctx context.Context) (*corev1.Pod, error){
		"mill": {
			"create": func(ctx context.Context) (*corev1.Pod, error) { return all.Create(ctx, object, metav1.CreateOptions{}) },
			"update": func(ctx context.Context) (*corev1.Pod, error) { return all.Update(ctx, object, metav1.UpdateOptions{}) },
			"status": func(ctx context.Context) (*corev1.Pod, error) {
				return all.UpdateStatus(ctx, object, metav1.UpdateOptions{})
			},
			"patch": func(ctx context.Context) (*corev1.Pod, error) {
				return all.Patch(ctx, web, merge, apiclient.PatchOptions{})
			},
			"apply patch": func(ctx context.Context) (*corev1.Pod, error) {
				return all.Patch(ctx, web, apply, apiclient.PatchOptions{FieldValidation: "Strict"})
			},
			"apply": func(ctx context.Context) (*corev1.Pod, error) {
				return all.Apply(ctx, web, object, apiclient.ApplyOptions{})
			},
			"subresource": func(ctx context.Context) (*corev1.Pod, error) { return sub.Patch(ctx, apply, metav1.PatchOptions{}) },
			"subresource apply": func(ctx context.Context) (*corev1.Pod, error) {
				return sub.Apply(ctx, object, metav1.ApplyOptions{})
			},
		},
		"baker": {
			"create": func(ctx context.Context) (*corev1.Pod, error) {
				return all.Create(ctx, object, metav1.CreateOptions{FieldManager: "baker"})
			},
			"apply": func(ctx context.Context) (*corev1.Pod, error) {
				return all.Apply(ctx, web, object, apiclient.ApplyOptions{FieldManager: "baker"})
			},
		},
		"": {
			"get": func(ctx context.Context) (*corev1.Pod, error) { return all.Get(ctx, web, metav1.GetOptions{}) },
			"delete": func(ctx context.Context) (*corev1.Pod, error) {
				return nil, all.Delete(ctx, web, metav1.DeleteOptions{})
			},
			"subresource": func(ctx context.Context) (*corev1.Pod, error) { return sub.Get(ctx, metav1.GetOptions{}) },
		},
	} {
		for name, call := range calls {
			require.NoError(t, must.Err(call(t.Context())), name)
			require.Equal(t, want, got.Query.Get("fieldManager"), name)
		}
	}
}
