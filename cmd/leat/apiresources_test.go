package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiResources runs leat api-resources and returns what it printed.
func apiResources(t *testing.T, path string, flags ...string) string {
	t.Helper()
	out, errs := newOutput(), newOutput()
	require.Zero(t, run(t.Context(), append([]string{"api-resources", "--kubeconfig", path}, flags...), out, errs), errs)
	require.Empty(t, errs.String())
	return out.String()
}

func TestAPIResources(t *testing.T) {
	path := serving(t)
	table := apiResources(t, path)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Equal(t, []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}, strings.Fields(lines[0]))
	require.Equal(t, []string{"configmaps", "cm", "v1", "true", "ConfigMap"}, strings.Fields(lines[1]), "the core group first, by name")
	require.Regexp(t, `(?m)^secrets +v1 +true +Secret$`, table)
	require.Regexp(t, `(?m)^deployments +deploy +apps/v1 +true +Deployment$`, table)
	require.Equal(t, strings.Index(lines[0], "KIND"), strings.Index(lines[1], "ConfigMap"), "columns stand below each other")

	for flags, want := range map[string]string{
		"-o name --api-group apps":                              "daemonsets.apps deployments.apps replicasets.apps statefulsets.apps",
		"-o name --api-group apps --sort-by kind":               "daemonsets.apps deployments.apps replicasets.apps statefulsets.apps",
		"-o name --namespaced=false":                            "namespaces nodes customresourcedefinitions.apiextensions.k8s.io",
		"-o name --namespaced --api-group=":                     "configmaps events pods secrets serviceaccounts services",
		"-o name --categories all --api-group=":                 "pods services",
		"-o name --categories all,none":                         "",
		"-o name --categories api-extensions":                   "customresourcedefinitions.apiextensions.k8s.io",
		"-o name --verbs list,fly":                              "",
		"-o name --sort-by kind --verbs list --api-group batch": "jobs.batch",
		"--no-headers --api-group batch":                        "jobs batch/v1 true Job",
		"--no-headers --api-group batch -o wide":                "jobs batch/v1 true Job create,delete,deletecollection,get,list,patch,update,watch all",
		"--api-group nothing":                                   "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
	} {
		require.Equal(t, want, strings.Join(strings.Fields(apiResources(t, path, strings.Fields(flags)...)), " "), flags)
	}
	byName := strings.Fields(apiResources(t, path, "-o", "name", "--sort-by", "name"))
	require.Equal(t, []string{"configmaps", "customresourcedefinitions.apiextensions.k8s.io", "daemonsets.apps"}, byName[:3])
	byKind := strings.Fields(apiResources(t, path, "-o", "name", "--sort-by", "kind"))
	require.Equal(t, "jobs.batch", byKind[6], "Job comes after both kinds of Event and before Lease")

	var list metav1.APIResourceList
	require.NoError(t, json.Unmarshal([]byte(apiResources(t, path, "-o", "json", "--api-group", "apps", "--sort-by", "name")), &list))
	require.Equal(t, metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, list.TypeMeta)
	require.Equal(t, metav1.APIResource{
		Name: "deployments", SingularName: "deployment", Namespaced: true, Group: "apps", Version: "v1", Kind: "Deployment",
		Verbs: list.APIResources[1].Verbs, ShortNames: []string{"deploy"}, Categories: []string{"all"},
	}, list.APIResources[1])
	require.Contains(t, list.APIResources[1].Verbs, "watch")
}

// TestAPIResourcesOfAClusterThatIsPartlyDown lists the resources that it can, names the others, and fails.
func TestAPIResourcesOfAClusterThatIsPartlyDown(t *testing.T) {
	pages := map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":[
			{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["list"]},
			{"resource":"ghosts","responseKind":{"kind":"Ghost"},"scope":"Namespaced","verbs":[]}]}]}]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","items":[
			{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]},
			{"metadata":{"name":"custom.metrics.k8s.io"},"versions":[{"version":"v1beta2","freshness":"Stale"}]},
			{"metadata":{"name":"two.example"},"versions":[
				{"version":"v2","resources":[{"resource":"twos","responseKind":{"kind":"Two"},"verbs":["list"]}]},
				{"version":"v1","resources":[{"resource":"twos","responseKind":{"kind":"Two"},"verbs":["list"]}]}]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(pages[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	out, errs := newOutput(), newOutput()
	require.Equal(t, 1, run(t.Context(), []string{"api-resources", "--server", server.URL, "--no-headers"}, out, errs))
	require.Equal(t, []string{"pods", "v1", "true", "Pod", "twos", "two.example/v2", "false", "Two"}, strings.Fields(out.String()))
	require.Equal(t, "leat: the list is not complete: get /apis/metrics.k8s.io/v1beta1: the server behind this API does not answer; "+
		"get /apis/custom.metrics.k8s.io/v1beta2: the server behind this API does not answer\n", errs.String())

	pages["/apis"] = "<html>"
	out, errs = newOutput(), newOutput()
	require.Equal(t, 1, run(t.Context(), []string{"api-resources", "--server", server.URL}, out, errs))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "leat: list resources: get /apis: malformed discovery document: ")
}

// TestWatchTakesEveryName checks that leat watch accepts the names that kubectl accepts.
func TestWatchTakesEveryName(t *testing.T) {
	path := serving(t)
	for name, synced := range map[string]string{
		"po": "pods", "pod": "pods", "Pod": "pods", "pods.v1": "pods", "deploy": "deployments.apps", "deployment": "deployments.apps",
		"deploy.apps": "deployments.apps", "deployments.v1.apps": "deployments.apps", "no": "nodes", "crds": "customresourcedefinitions.apiextensions.k8s.io",
	} {
		out, errs := newOutput(), newOutput()
		require.Zero(t, run(t.Context(), []string{"watch", name, "-A", "--once", "--kubeconfig", path}, out, errs), errs)
		require.Contains(t, out.String(), "SYNCED    "+synced+" (0)", name)
	}
	for name, says := range map[string]string{
		"pdos":            `leat: unknown resource "pdos", did you mean "pods"?` + "\n",
		"deployments.aps": `leat: unknown resource "deployments.aps", did you mean "deployments.apps"?` + "\n",
		"certificates":    `leat: unknown resource "certificates"` + "\n",
	} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), []string{"watch", name, "--kubeconfig", path}, out, errs))
		require.Equal(t, says, errs.String())
	}
}

func TestAnIncompleteListNamesFewDocuments(t *testing.T) {
	all := make([]error, 12)
	for i := range all {
		all[i] = fmt.Errorf("e%d", i)
	}
	require.Equal(t, "e0; e1; e2; e3; e4; e5; e6; e7; e8; e9", oneLine(first(all[:10])))
	require.Equal(t, "e0; e1; e2; e3; e4; e5; e6; e7; e8; e9; and 2 more", oneLine(first(all)))
}
