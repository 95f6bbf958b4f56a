package apply

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Strategic returns the strategic merge patches of a built-in kind. Its Go types have the keys of lists and the
// strategies of fields.
func Strategic(group, kind string) registry.MergePatch {
	var metas sync.Map // of strategicpatch.LookupPatchMeta, by the version
	return func(served string, original, patch object.Tree) (object.Tree, error) {
		meta, ok := metas.Load(served)
		if !ok {
			gvk := schema.GroupVersionKind{Group: group, Version: served, Kind: kind}
			sample, err := openapi.NewObject(gvk)
			if err != nil {
				return nil, fmt.Errorf("testserver: strategic merge patch of %v: %w", gvk, err)
			}
			if meta, err = strategicpatch.NewPatchMetaFromStruct(sample); err != nil {
				return nil, fmt.Errorf("testserver: strategic merge patch of %v: %w", gvk, err)
			}
			metas.Store(served, meta)
		}
		// The library merges into its arguments.
		out, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(
			runtime.DeepCopyJSON(original), runtime.DeepCopyJSON(patch), meta.(strategicpatch.LookupPatchMeta))
		if err != nil {
			return nil, unmergeable(err)
		}
		for _, name := range []string{"kind", "apiVersion"} { // kube-apiserver ignores them in these patches
			if value, ok := original[name]; ok {
				out[name] = value
			}
		}
		return out, nil
	}
}

// unmergeable returns the answer to a patch that cannot be merged.
func unmergeable(err error) error {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case is(mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return apierrors.NewBadRequest(err.Error())
	case is(mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return fieldmanager.Unexpected(err)
}
