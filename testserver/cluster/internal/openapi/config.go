package openapi

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	openapiutil "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"

	// The groups that kube-apiserver knows and does not serve. Definitions that belong to every group name them.
	_ "k8s.io/kubernetes/pkg/apis/admission/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/imagepolicy/install"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"

	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
)

// apiVersion is the version of Kubernetes in the documents.
const apiVersion = "1.37"

// definitionScheme has the type of CustomResourceDefinitions, which kube-apiserver serves by another scheme than the
// other built-in types.
var definitionScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}()

// schemeOf returns the scheme of a group.
func schemeOf(group string) *runtime.Scheme {
	if group == apiextensionsv1.GroupName {
		return definitionScheme
	}
	return builtin.Scheme()
}

// NewObject returns an empty object of a built-in kind.
func NewObject(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return schemeOf(gvk.Group).New(gvk)
}

var namer = sync.OnceValue(func() *openapinamer.DefinitionNamer {
	return openapinamer.NewDefinitionNamer(builtin.Scheme(), definitionScheme)
})

func info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: apiVersion}}
}

// configV3 describes the documents of version 3.
var configV3 = sync.OnceValue(func() *common.OpenAPIV3Config {
	bearer := &spec3.SecurityScheme{SecuritySchemeProps: spec3.SecuritySchemeProps{
		Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer Token authentication",
	}}
	return &common.OpenAPIV3Config{
		Info:            info(),
		DefaultResponse: &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "Default Response."}},
		CommonResponses: map[int]*spec3.Response{401: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}}},
		//lint:ignore SA1019 Kubernetes has its names only in this form.
		GetOperationIDAndTags: openapinamer.GetOperationIDAndTags,
		GetDefinitionName:     namer().GetDefinitionName,
		GetDefinitions:        definitions,
		Definitions:           definitions(references("#/components/schemas/")),
		SecuritySchemes:       spec3.SecuritySchemes{"BearerToken": bearer},
		DefaultSecurity:       []map[string][]string{{"BearerToken": {}}},
	}
})

// configV2 describes the document of version 2.
var configV2 = sync.OnceValue(func() *common.Config {
	return &common.Config{
		ProtocolList:    []string{"https"},
		Info:            info(),
		DefaultResponse: &spec.Response{ResponseProps: spec.ResponseProps{Description: "Default Response."}},
		CommonResponses: map[int]spec.Response{401: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}}},
		//lint:ignore SA1019 Kubernetes has its names only in this form.
		GetOperationIDAndTags: openapinamer.GetOperationIDAndTags,
		GetDefinitionName:     namer().GetDefinitionName,
		GetDefinitions:        definitions,
		SecurityDefinitions: &spec.SecurityDefinitions{
			"BearerToken": &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{
				Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer Token authentication",
			}},
		},
		DefaultSecurity: []map[string][]string{{"BearerToken": {}}},
	}
})

// definitions returns the definitions without the fields of features that are off.
var definitions = openapiutil.GetOpenAPIDefinitionsWithoutDisabledFeatures(generated.GetOpenAPIDefinitions)

// references returns the function that makes references to definitions. Parsing a reference is slow, and there are
// thousands of them, so it parses each one once.
func references(prefix string) common.ReferenceCallback {
	known := map[string]spec.Ref{}
	return func(name string) spec.Ref {
		ref, ok := known[name]
		if !ok {
			defined, _ := namer().GetDefinitionName(name)
			ref = spec.MustCreateRef(prefix + common.EscapeJsonPointer(defined))
			known[name] = ref
		}
		return ref
	}
}
