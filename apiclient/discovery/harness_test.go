package discovery_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
)

const (
	v2Type      = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	v2beta1Type = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// page is one answer.
type page struct {
	code        int    // 0 means 200
	contentType string // empty means application/json
	etag        string
	body        string
	missing     int // bytes of the body that are announced and never sent
}

// server answers with pages by path, and with 404 for other paths. A client that requests aggregated discovery gets the
// page of the path with "+".
type server struct {
	mu    sync.Mutex
	pages map[string]page
	asked []string // path, "+" and " if ETag" of each request
	gate  func(*http.Request)
}

func newServer(pages map[string]page) *server { return &server{pages: maps.Clone(pages)} }

func (s *server) set(path string, p page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = p
}

// requests returns the requests since the last call.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return s.asked
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	s.mu.Lock()
	plain, ok := s.pages[path]
	if p, has := s.pages[path+"+"]; has && strings.HasPrefix(r.Header.Get("Accept"), v2Type+","+v2beta1Type+",application/json") {
		plain, ok, path = p, true, path+"+"
	}
	tag := r.Header.Get("If-None-Match")
	if tag != "" {
		path += " if " + tag
	}
	s.asked = append(s.asked, path)
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		gate(r)
	}
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case tag != "" && tag == plain.etag:
		w.WriteHeader(http.StatusNotModified)
		return
	case plain.contentType == "":
		plain.contentType = "application/json"
	}
	w.Header().Set("Content-Type", plain.contentType)
	if plain.etag != "" {
		w.Header().Set("ETag", plain.etag)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(plain.body)+plain.missing))
	w.WriteHeader(max(plain.code, 200))
	_, _ = io.WriteString(w, plain.body)
}

func (s *server) client(t *testing.T) *apiclient.Client {
	t.Helper()
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://server.memory", DialContext: listerwatchertest.Serve(t, s)}))(t)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func plain(body string) page { return page{body: body} }

func aggregated(etag, body string) page { return page{contentType: v2Type, etag: etag, body: body} }

func status(code int, reason, message string) page {
	return page{code: code, body: fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)}
}

// Resources of the cluster below.
var (
	pods        = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodes       = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	events      = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	newEvents   = api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	deployments = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	classes     = api.Resource{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Plural: "storageclasses"}
	attributes  = api.Resource{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttributesClass", Plural: "volumeattributesclasses"}
	scalers     = api.Resource{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Namespaced: true}
	oldScalers  = api.Resource{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Namespaced: true}
	mills       = api.Resource{Group: "a.example", Version: "v2", Kind: "Mill", Plural: "mills", Namespaced: true}
	oldMills    = api.Resource{Group: "a.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
	weirs       = api.Resource{Group: "a.example", Version: "v1", Kind: "Weir", Plural: "weirs"}
	windmills   = api.Resource{Group: "b.example", Version: "v1", Kind: "Windmill", Plural: "mills", Namespaced: true}
	wheels      = api.Resource{Group: "v3.example", Version: "v1", Kind: "Wheel", Plural: "wheels"}
)

// aggregatedPages and plainPages are one cluster in the format of a new and of an old server. They are parts of the
// answers of kube-apiserver 1.37: its built-in resources omit group and version of their own kind, custom resources do
// not.
var aggregatedPages = map[string]page{
	"/api+": aggregated(`"core-1"`, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
		{"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},
		{"resource":"events","responseKind":{"group":"","version":"","kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["get","list","watch"],"shortNames":["ev"]},
		{"resource":"nodes","responseKind":{"group":"","version":"","kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get","list","watch"],"shortNames":["no"]},
		{"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["create","get","list","watch"],"shortNames":["po"],"categories":["all"],"subresources":[
			{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},
			{"subresource":"log","responseKind":{"group":"","version":"","kind":"Pod"},"verbs":["get"]}]}]}]}]}`),
	"/apis+": aggregated(`"groups-1"`, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
		{"metadata":{"name":"apps","creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get","list","watch"],"shortNames":["deploy"],"categories":["all"],"subresources":[
				{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]}]}]},
		{"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"events","responseKind":{"group":"","version":"","kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["get","list","watch"],"shortNames":["ev"]}]}]},
		{"metadata":{"name":"autoscaling"},"versions":[
			{"version":"v2","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"","version":"","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"horizontalpodautoscaler","verbs":["get","list","watch"],"shortNames":["hpa"],"categories":["all"]}]},
			{"version":"v1","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"","version":"","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"horizontalpodautoscaler","verbs":["get","list","watch"],"shortNames":["hpa"],"categories":["all"]}]}]},
		{"metadata":{"name":"storage.k8s.io"},"versions":[
			{"version":"v1","freshness":"Current","resources":[{"resource":"storageclasses","responseKind":{"group":"","version":"","kind":"StorageClass"},"scope":"Cluster","singularResource":"storageclass","verbs":["get","list","watch"],"shortNames":["sc"]}]},
			{"version":"v1beta1","freshness":"Current","resources":[{"resource":"volumeattributesclasses","responseKind":{"group":"","version":"","kind":"VolumeAttributesClass"},"scope":"Cluster","singularResource":"volumeattributesclass","verbs":["get","list","watch"],"shortNames":["vac"]}]}]},
		{"metadata":{"name":"a.example"},"versions":[
			{"version":"v2","freshness":"Current","resources":[
				{"resource":"mills","responseKind":{"group":"a.example","version":"v2","kind":"Mill"},"scope":"Namespaced","singularResource":"grinder","verbs":["get","list","watch"],"shortNames":["sc","pod"],"categories":["all","power"],"subresources":[
					{"subresource":"status","responseKind":{"group":"a.example","version":"v2","kind":"Mill"},"verbs":["get"]}]}]},
			{"version":"v1","freshness":"Current","resources":[
				{"resource":"mills","responseKind":{"group":"a.example","version":"v1","kind":"Mill"},"scope":"Namespaced","singularResource":"grinder","verbs":["get","list","watch"],"shortNames":["sc"],"categories":["all"]},
				{"resource":"weirs","responseKind":{"group":"a.example","version":"v1","kind":"Weir"},"scope":"Cluster","singularResource":"weir","verbs":["get","list","watch"]}]}]},
		{"metadata":{"name":"b.example"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"mills","responseKind":{"group":"b.example","version":"v1","kind":"Windmill"},"scope":"Namespaced","singularResource":"mill","verbs":["get","list","watch"]}]}]},
		{"metadata":{"name":"v3.example"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"wheels","responseKind":{"group":"v3.example","version":"v1","kind":"Wheel"},"scope":"Cluster","singularResource":"","verbs":["get","list","watch"]}]}]}]}`),
}

var plainPages = map[string]page{
	"/api": plain(`{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}`),
	"/apis": plain(`{"kind":"APIGroupList","apiVersion":"v1","groups":[
		{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},
		{"name":"events.k8s.io","versions":[{"groupVersion":"events.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"events.k8s.io/v1","version":"v1"}},
		{"name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},{"groupVersion":"autoscaling/v1","version":"v1"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}},
		{"name":"storage.k8s.io","versions":[{"groupVersion":"storage.k8s.io/v1","version":"v1"},{"groupVersion":"storage.k8s.io/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"storage.k8s.io/v1","version":"v1"}},
		{"name":"a.example","versions":[{"groupVersion":"a.example/v1","version":"v1"},{"groupVersion":"a.example/v2","version":"v2"}],"preferredVersion":{"groupVersion":"a.example/v2","version":"v2"}},
		{"name":"b.example","versions":[{"groupVersion":"b.example/v1","version":"v1"}]},
		{"name":"v3.example","versions":[{"groupVersion":"v3.example/v1","version":"v1"}],"preferredVersion":{"groupVersion":"v3.example/v1","version":"v1"}}]}`),
	"/api/v1": plain(`{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},
		{"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":["get","list","watch"],"shortNames":["ev"],"storageVersionHash":"r2yiGXH7wu8="},
		{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":["get","list","watch"],"shortNames":["no"]},
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","get","list","watch"],"shortNames":["po"],"categories":["all"]},
		{"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]},
		{"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]}]}`),
	"/apis/apps/v1": plain(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[
		{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get","list","watch"],"shortNames":["deploy"],"categories":["all"]},
		{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}]}`),
	"/apis/events.k8s.io/v1": plain(`{"kind":"APIResourceList","groupVersion":"events.k8s.io/v1","resources":[
		{"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":["get","list","watch"],"shortNames":["ev"]}]}`),
	"/apis/autoscaling/v2": plain(`{"kind":"APIResourceList","groupVersion":"autoscaling/v2","resources":[
		{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler","verbs":["get","list","watch"],"shortNames":["hpa"],"categories":["all"]}]}`),
	"/apis/autoscaling/v1": plain(`{"kind":"APIResourceList","groupVersion":"autoscaling/v1","resources":[
		{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler","verbs":["get","list","watch"],"shortNames":["hpa"],"categories":["all"]}]}`),
	"/apis/storage.k8s.io/v1": plain(`{"kind":"APIResourceList","groupVersion":"storage.k8s.io/v1","resources":[
		{"name":"storageclasses","singularName":"storageclass","namespaced":false,"kind":"StorageClass","verbs":["get","list","watch"],"shortNames":["sc"]}]}`),
	"/apis/storage.k8s.io/v1beta1": plain(`{"kind":"APIResourceList","groupVersion":"storage.k8s.io/v1beta1","resources":[
		{"name":"volumeattributesclasses","singularName":"volumeattributesclass","namespaced":false,"kind":"VolumeAttributesClass","verbs":["get","list","watch"],"shortNames":["vac"]}]}`),
	"/apis/a.example/v2": plain(`{"kind":"APIResourceList","groupVersion":"a.example/v2","resources":[
		{"name":"mills/status","singularName":"","namespaced":true,"kind":"Mill","verbs":["get"]},
		{"name":"mills","singularName":"grinder","namespaced":true,"kind":"Mill","verbs":["get","list","watch"],"shortNames":["sc","pod"],"categories":["all","power"]}]}`),
	"/apis/a.example/v1": plain(`{"kind":"APIResourceList","groupVersion":"a.example/v1","resources":[
		{"name":"mills","singularName":"grinder","namespaced":true,"kind":"Mill","verbs":["get","list","watch"],"shortNames":["sc"],"categories":["all"]},
		{"name":"weirs","singularName":"weir","namespaced":false,"kind":"Weir","verbs":["get","list","watch"]}]}`),
	"/apis/b.example/v1": plain(`{"kind":"APIResourceList","groupVersion":"b.example/v1","resources":[
		{"name":"mills","singularName":"mill","namespaced":true,"kind":"Windmill","verbs":["get","list","watch"]}]}`),
	"/apis/v3.example/v1": plain(`{"kind":"APIResourceList","groupVersion":"v3.example/v1","resources":[
		{"name":"wheels","singularName":"","namespaced":false,"kind":"Wheel","verbs":["get","list","watch"]}]}`),
}
