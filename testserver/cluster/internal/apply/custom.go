package apply

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Convert returns an object in another version, with its apiVersion. It must not change tree.
type Convert func(tree object.Tree, to string) (object.Tree, error)

// Custom returns the managers of a custom resource. Without schemas, types are deduced: every list has one owner. A nil
// convert changes only apiVersion.
func Custom(crd *apiextensionsv1.CustomResourceDefinition, convert Convert) registry.Managers {
	build := sync.OnceValues(func() (*typed.Parser, error) { return parserOf(crd) })
	group, kind := crd.Spec.Group, crd.Spec.Names.Kind
	find := func(gvk schema.GroupVersionKind) (typed.ParseableType, bool) {
		served := false
		for _, v := range crd.Spec.Versions {
			served = served || v.Name == gvk.Version
		}
		if !served || gvk.Group != group || gvk.Kind != kind {
			return typed.ParseableType{}, false
		}
		parser, err := build()
		if err != nil {
			return typed.DeducedParseableType, true
		}
		return parser.Type(openapi.CustomName(gvk)), true
	}
	types := fieldmanager.Types{Of: find}
	if convert != nil {
		types.Convert = func(tree object.Tree, to schema.GroupVersion) (object.Tree, error) {
			out, err := convert(tree, to.Version)
			if err != nil {
				return nil, fmt.Errorf("testserver: convert to %v: %w", to, err)
			}
			return out, nil
		}
	}
	return fieldmanager.New(fieldmanager.Kind{Group: group, Kind: kind, Resets: customResets(crd)}, types)
}

// parserOf returns the types of all versions of a definition.
func parserOf(crd *apiextensionsv1.CustomResourceDefinition) (*typed.Parser, error) {
	schemas, err := openapi.CustomSchemas(crd)
	if err != nil {
		return nil, err
	}
	return openapi.Parser(schemas)
}

// customResets are the fields that writes to a custom resource and to its status ignore.
func customResets(crd *apiextensionsv1.CustomResourceDefinition) map[string]map[fieldpath.APIVersion]fieldpath.Filter {
	whole, status := map[fieldpath.APIVersion]*fieldpath.Set{}, map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, v := range crd.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Status == nil {
			continue
		}
		version := fieldpath.APIVersion(schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String())
		whole[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		status[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	return map[string]map[fieldpath.APIVersion]fieldpath.Filter{
		"": fieldpath.NewExcludeFilterSetMap(whole), "status": fieldpath.NewExcludeFilterSetMap(status),
	}
}
