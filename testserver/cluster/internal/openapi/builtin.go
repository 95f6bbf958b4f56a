package openapi

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/emicklei/go-restful/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	builder2 "k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/leatproject/leat/testserver/internal/registry"
)

type specSchema = spec.Schema

const kindExtension = "x-kubernetes-group-version-kind"

// builtins are the documents of a set of built-in resources. They never change.
type builtins struct {
	v3 func() (map[string]*content, error) // by path
	v2 func() (*spec.Swagger, error)
}

// lastBuiltins are the documents of the last set. Building them takes a second, and nearly all servers of a process
// have the same built-in resources.
var lastBuiltins struct {
	mu  sync.Mutex // guards the fields below
	key string
	builtins
}

// builtinsOf returns the documents of built-in resources.
func builtinsOf(all []*registry.Definition) (builtins, error) {
	var lists []metav1.APIResourceList
	var deleted []bool
	for _, group := range append([]string{""}, registry.Groups(all)...) {
		for _, served := range registry.VersionsOf(all, group) {
			list, _ := registry.ResourceList(all, group, served)
			lists = append(lists, list)
		}
	}
	for _, d := range all {
		deleted = append(deleted, d.ReturnsDeleted)
	}
	key, err := json.Marshal([]any{lists, deleted})
	if err != nil {
		return builtins{}, fmt.Errorf("testserver: encode the resources: %w", err)
	}
	lastBuiltins.mu.Lock()
	defer lastBuiltins.mu.Unlock()
	if lastBuiltins.key != string(key) {
		lastBuiltins.key, lastBuiltins.builtins = string(key), newBuiltins(all)
	}
	return lastBuiltins.builtins, nil
}

func newBuiltins(all []*registry.Definition) builtins {
	services := sync.OnceValues(func() ([]*restful.WebService, error) { return webServices(all) })
	return builtins{
		v3: sync.OnceValues(func() (map[string]*content, error) {
			found, err := services()
			if err != nil {
				return nil, err
			}
			return buildV3(found)
		}),
		v2: sync.OnceValues(func() (*spec.Swagger, error) {
			found, err := services()
			if err != nil {
				return nil, err
			}
			out, err := builder2.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(found), configV2())
			if err != nil {
				return nil, fmt.Errorf("testserver: build OpenAPI v2: %w", err)
			}
			out.Definitions = handler.PruneDefaults(out.Definitions)
			return out, nil
		}),
	}
}

// buildV3 returns a document for each group and version, and for each document of discovery.
func buildV3(services []*restful.WebService) (map[string]*content, error) {
	out := map[string]*content{}
	for _, s := range services {
		document, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{s}), configV3())
		if err != nil {
			return nil, fmt.Errorf("testserver: build OpenAPI of %s: %w", s.RootPath(), err)
		}
		if gv, ok := versionOfPath(pathOf(s)); ok {
			scope(document.Components.Schemas, gv)
		}
		if out[pathOf(s)], err = newContent(document, protobufV3); err != nil {
			return nil, err
		}
	}
	return out, nil
}
