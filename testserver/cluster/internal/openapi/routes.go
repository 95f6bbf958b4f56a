package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/server/routes"
	kuberoutes "k8s.io/kubernetes/pkg/routes"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// webServices returns the routes of kube-apiserver for the built-in resources. Nothing serves them: they describe.
func webServices(all []*registry.Definition) ([]*restful.WebService, error) {
	container := restful.NewContainer()
	codecs := serializer.NewCodecFactory(schemeOf(""))
	container.Add(discovery.NewLegacyRootAPIHandler(nil, codecs, "/api").WebService())
	container.Add(discovery.NewRootAPIsHandler(nil, codecs).WebService())
	routes.Version{Version: &version.Info{}}.Install(container)
	kuberoutes.NewOpenIDMetadataServer(nil).Install(container)
	returned := map[schema.GroupResource]bool{}
	for _, d := range all {
		returned[d.GroupResource()] = d.ReturnsDeleted && !d.IsNamespace() // the documents do not know that namespaces do
	}
	for _, group := range append([]string{""}, registry.Groups(all)...) {
		root := "/apis"
		if group == "" {
			root = "/api"
		} else {
			container.Add(discovery.NewAPIGroupHandler(codecs, metav1.APIGroup{Name: group}).WebService())
		}
		for _, served := range registry.VersionsOf(all, group) {
			list, _ := registry.ResourceList(all, group, served)
			if err := addRoutes(container, root, list, func(plural string) bool {
				return returned[schema.GroupResource{Group: group, Resource: plural}]
			}); err != nil {
				return nil, err
			}
		}
	}
	return container.RegisteredWebServices(), nil
}

// addRoutes adds the routes of one group and version.
func addRoutes(container *restful.Container, root string, list metav1.APIResourceList, returned func(string) bool) error {
	described, err := storages(&list, returned)
	if err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return err
	}
	s := schemeOf(gv.Group)
	v := &endpoints.APIGroupVersion{
		Storage: described, Root: root, GroupVersion: gv, OptionsExternalVersion: &schema.GroupVersion{Version: "v1"},
		Serializer: serializer.NewCodecFactory(s), ParameterCodec: runtime.NewParameterCodec(s),
		Typer: s, Creater: s, Convertor: s, UnsafeConvertor: s, Defaulter: s, Namer: runtime.Namer(meta.NewAccessor()),
		TypeConverter: managedfields.NewDeducedTypeConverter(), EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
	}
	if _, _, err := v.InstallREST(container); err != nil {
		return fmt.Errorf("testserver: OpenAPI of %v: %w", gv, err)
	}
	return nil
}

// pathOf returns the name of a document of version 3: the path of its routes without the first slash.
func pathOf(s *restful.WebService) string { return strings.TrimPrefix(s.RootPath(), "/") }

// pathOfVersion returns the name of the document of a group and version.
func pathOfVersion(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// versionOfPath is the reverse; ok is false for the other documents.
func versionOfPath(name string) (gv schema.GroupVersion, ok bool) {
	parts := strings.Split(name, "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return gv, false
}

// scope removes the kinds of other groups from the definitions of WatchEvent and DeleteOptions, which are registered in
// every group and version. Those of the core group stay.
func scope(schemas map[string]*specSchema, own schema.GroupVersion) {
	for _, s := range schemas {
		kinds, ok := s.Extensions[kindExtension].([]any)
		if !ok || len(kinds) < 2 {
			continue
		}
		first, _ := kinds[0].(map[string]any)
		if kind := first["kind"]; kind != "WatchEvent" && kind != "DeleteOptions" {
			continue
		}
		s.Extensions[kindExtension] = slices.DeleteFunc(slices.Clone(kinds), func(k any) bool {
			m, _ := k.(map[string]any)
			group, _, _ := unstructured.NestedString(m, "group")
			served, _, _ := unstructured.NestedString(m, "version")
			gv := schema.GroupVersion{Group: group, Version: served}
			return gv != own && gv != schema.GroupVersion{Version: "v1"}
		})
	}
}
