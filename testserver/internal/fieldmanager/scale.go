package fieldmanager

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

const scaleVersion = "v1"

// scaling has the managers of Scales. It implements registry.Scaling.
type scaling struct {
	managers registry.Managers
	merge    registry.MergePatch
	group    string // of the resource
	paths    managedfields.ResourcePathMappings
}

// Scaling returns the managers of the Scales of a resource. replicas are the paths of the replicas in the versions of
// the resource; nil is a version without Scales. of are the managers of every Scale, and merge is its strategic merge
// patch, which may be nil.
func Scaling(group string, replicas map[string][]string, of registry.Managers, merge registry.MergePatch) registry.Scaling {
	s := &scaling{managers: of, merge: merge, group: group, paths: managedfields.ResourcePathMappings{}}
	for version, path := range replicas {
		var at fieldpath.Path
		for _, name := range path {
			at = append(at, fieldpath.PathElement{FieldName: &name})
		}
		s.paths[schema.GroupVersion{Group: group, Version: version}.String()] = at
	}
	return s
}

// Updated implements registry.Managers.
func (s *scaling) Updated(by registry.Manager, live, after object.Tree) (object.Tree, error) {
	by.Served = scaleVersion
	return s.managers.Updated(by, live, after)
}

// Applied implements registry.Managers.
func (s *scaling) Applied(by registry.Manager, live, configuration object.Tree, force bool) (object.Tree, error) {
	by.Served = scaleVersion
	return s.managers.Applied(by, live, configuration, force)
}

// Merge implements registry.Scaling.
func (s *scaling) Merge(_ string, original, patch object.Tree) (object.Tree, error) {
	return s.merge(scaleVersion, original, patch)
}

// FromObject implements registry.Scaling.
func (s *scaling) FromObject(served string, tree object.Tree) ([]any, error) {
	return converted(s.handler(served, tree).ToSubresource())
}

// ToObject implements registry.Scaling.
func (s *scaling) ToObject(served string, tree, scale object.Tree) ([]any, error) {
	return converted(s.handler(served, tree).ToParent(entriesOf(object.Metadata(scale))))
}

func (s *scaling) handler(served string, tree object.Tree) *managedfields.ScaleHandler {
	version := schema.GroupVersion{Group: s.group, Version: served}
	return managedfields.NewScaleHandler(entriesOf(object.Metadata(tree)), version, s.paths)
}

func converted(entries []metav1.ManagedFieldsEntry, err error) ([]any, error) {
	if err != nil {
		return nil, fmt.Errorf("testserver: managed fields of a Scale: %w", err)
	}
	return encodeEntries(entries)
}
