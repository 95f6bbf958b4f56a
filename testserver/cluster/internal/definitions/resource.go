package definitions

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/cluster/internal/causes"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Resource returns the resource customresourcedefinitions.
func (d *Definitions) Resource() *registry.Definition {
	return &registry.Definition{
		Settings: registry.Settings{
			Resource: api.Resource{
				Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
			},
			ShortNames: []string{"crd", "crds"},
			Categories: []string{"api-extensions"},
		},
		GoPackage:      "apiextensions",
		Generation:     true,
		Subs:           []registry.Subresource{{Name: "status", Verbs: metav1.Verbs{"get", "patch", "update"}}},
		Schema:         definitionSchema{},
		Columns:        definitionColumns{},
		Managers:       apply.Builtin(fieldmanager.Kind{Group: apiextensionsv1.GroupName, Kind: definitionKind.Kind, Resets: definitionResets}),
		StrategicMerge: apply.Strategic(apiextensionsv1.GroupName, definitionKind.Kind),
	}
}

// definitionResets are the fields that writes to a definition and to its status ignore.
var definitionResets = map[string]map[fieldpath.APIVersion]fieldpath.Filter{
	"":       fieldpath.NewExcludeFilterSetMap(customresourcedefinition.NewStrategy(definitionCodec.scheme).GetResetFields()),
	"status": fieldpath.NewExcludeFilterSetMap(customresourcedefinition.NewStatusStrategy(definitionCodec.scheme).GetResetFields()),
}

// definitionSchema has the rules of CustomResourceDefinitions. It implements registry.Schema.
type definitionSchema struct{}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Decode implements registry.Schema.
func (definitionSchema) Decode(to registry.Target, mediaType string, body []byte) (object.Tree, []string, error) {
	obj, problems, err := definitionCodec.decode(to, definitionKind, mediaType, body)
	if err != nil {
		return nil, nil, err
	}
	tree, err := treeOf(obj)
	return tree, problems, err
}

// treeOf converts a CustomResourceDefinition of version v1.
func treeOf(obj runtime.Object) (object.Tree, error) {
	obj.GetObjectKind().SetGroupVersionKind(definitionKind)
	tree, err := object.From(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if meta := object.MapAt(tree, "metadata"); meta != nil && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return tree, nil
}

// internal converts a tree into the form that the library validates.
func internal(tree object.Tree) (*apiextensions.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, crd); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: parse a definition: %w", err))
	}
	out := &apiextensions.CustomResourceDefinition{}
	if err := definitionCodec.scheme.Convert(crd, out, nil); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: convert a definition: %w", err))
	}
	out.SetGroupVersionKind(apiextensions.SchemeGroupVersion.WithKind(definitionKind.Kind))
	return out, nil
}

// external is the reverse of internal.
func external(crd *apiextensions.CustomResourceDefinition) (object.Tree, error) {
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := definitionCodec.scheme.Convert(crd, out, nil); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: convert a definition: %w", err))
	}
	return treeOf(out)
}

// Create implements registry.Schema.
func (definitionSchema) Create(op registry.Operation, tree object.Tree) (object.Tree, []string, error) {
	crd, err := internal(tree)
	if err != nil {
		return nil, nil, err
	}
	ctx, warnings := definitionContext()
	if err := rest.BeforeCreate(customresourcedefinition.NewStrategy(definitionCodec.scheme), ctx, crd); err != nil {
		return nil, nil, causes.Order(err)
	}
	stored, err := external(crd)
	return stored, *warnings, err
}

// Update implements registry.Schema.
func (definitionSchema) Update(op registry.Operation, before, tree object.Tree) (object.Tree, []string, error) {
	crd, err := internal(tree)
	if err != nil {
		return nil, nil, err
	}
	old, err := internal(before)
	if err != nil {
		return nil, nil, err
	}
	var strategy rest.RESTUpdateStrategy = customresourcedefinition.NewStrategy(definitionCodec.scheme)
	if op.Subresource == "status" {
		strategy = customresourcedefinition.NewStatusStrategy(definitionCodec.scheme)
	}
	ctx, warnings := definitionContext()
	if err := rest.BeforeUpdate(strategy, ctx, crd, old); err != nil {
		return nil, nil, causes.Order(err)
	}
	stored, err := external(crd)
	return stored, *warnings, err
}

func definitionContext() (context.Context, *[]string) {
	found := &recorder{}
	return warning.WithWarningRecorder(request.WithNamespace(context.Background(), metav1.NamespaceNone), found), &found.texts
}

// Convert implements registry.Schema.
func (definitionSchema) Convert(_ string, stored object.Tree) (object.Tree, error) {
	tree := runtime.DeepCopyJSON(stored)
	tree["kind"], tree["apiVersion"] = definitionKind.Kind, definitionKind.GroupVersion().String()
	return tree, nil
}

// Encode implements registry.Schema.
func (definitionSchema) Encode(mediaType string, tree object.Tree) ([]byte, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, crd); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: parse a definition: %w", err))
	}
	return definitionCodec.encode(crd, definitionKind.GroupVersion(), mediaType)
}

// MediaTypes implements registry.Schema.
func (definitionSchema) MediaTypes() []string { return []string{jsonType, yamlType, protobufType} }
