package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// CustomName returns the name of the definition of a custom resource.
func CustomName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// CustomSchemas returns the definitions of all versions of a custom resource, with those that they refer to.
func CustomSchemas(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*spec.Schema, error) {
	out := map[string]*spec.Schema{}
	for _, v := range crd.Spec.Versions {
		document, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{})
		if err != nil {
			return nil, fmt.Errorf("testserver: OpenAPI of %s %s: %w", crd.Name, v.Name, err)
		}
		maps.Copy(out, document.Components.Schemas)
	}
	return out, nil
}

// Defined is implemented by the Schema of a custom resource. OpenAPI documents describe the resource as the definition
// does.
type Defined interface {
	CustomResourceDefinition() *apiextensionsv1.CustomResourceDefinition
}

// definitionOf returns the CustomResourceDefinition of a custom resource. One that was registered without a definition
// may have any contents.
func definitionOf(d *registry.Definition) *apiextensionsv1.CustomResourceDefinition {
	if defined, ok := d.Schema.(Defined); ok {
		return defined.CustomResourceDefinition()
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = d.GroupResource().String()
	crd.Spec.Group = d.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: d.Plural, Singular: d.SingularName(), Kind: d.Kind, ListKind: d.ListKindName(),
	}
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	if d.Namespaced {
		crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	preserve := true
	for _, served := range append([]string{d.Version}, d.Versions...) {
		v := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: served, Served: true, Storage: served == d.Version, Subresources: &apiextensionsv1.CustomResourceSubresources{},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve,
			}},
		}
		if !d.NoStatus {
			v.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
		}
		crd.Spec.Versions = append(crd.Spec.Versions, v)
	}
	return crd
}

// customV3 returns the document of the custom resources of one group and version.
func customV3(all []*registry.Definition, gv schema.GroupVersion) (*content, error) {
	var specs []*spec3.OpenAPI
	for _, d := range all {
		if d.Group != gv.Group || !d.Serves(gv.Version) {
			continue
		}
		s, err := builder.BuildOpenAPIV3(definitionOf(d), gv.Version, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			return nil, fmt.Errorf("testserver: OpenAPI of %s: %w", d.Resource, err)
		}
		specs = append(specs, s)
	}
	merged, err := builder.MergeSpecsV3(specs...)
	if err != nil {
		return nil, fmt.Errorf("testserver: OpenAPI of %v: %w", gv, err)
	}
	return newContent(merged, protobufV3)
}

// customV2 returns the specifications of custom resources.
func customV2(all []*registry.Definition) ([]*spec.Swagger, error) {
	var out []*spec.Swagger
	for _, d := range all {
		for _, served := range append([]string{d.Version}, d.Versions...) {
			s, err := builder.BuildOpenAPIV2(definitionOf(d), served, builder.Options{V2: true, IncludeSelectableFields: true})
			if err != nil {
				return nil, fmt.Errorf("testserver: OpenAPI of %s: %w", d.Resource, err)
			}
			s.Definitions = handler.PruneDefaults(s.Definitions)
			out = append(out, s)
		}
	}
	return out, nil
}
