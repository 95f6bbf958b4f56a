package testserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// maxPatchOperations is the largest number of operations that kube-apiserver accepts in a JSON patch.
const maxPatchOperations = 10_000

// patch applies a JSON patch, a merge patch or server-side apply. Strategic merge patches need the schemas of the
// built-in types. The server has no schemas, so it answers 415, as kube-apiserver does for custom resources.
func (x *call) patch() error {
	kind := types.PatchType(wire.ContentType(x.http))
	if kind == types.ApplyYAMLPatchType {
		return x.apply()
	}
	w, err := x.write()
	if err != nil {
		return err
	}
	if x.request.Query.Has("force") {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	body, err := wire.ReadBody(x.http)
	if err != nil {
		return err
	}
	change, err := changeOf(kind, body)
	if err != nil {
		return err
	}
	r, err := x.patched(w, change)
	if err != nil {
		return err
	}
	return x.respond(http.StatusOK, r)
}

// patched applies change to the stored object. It holds the lock from read to write, so there is nothing to retry. A
// resource version in the patch is checked as in an update.
func (x *call) patched(w writer.Write, change func(object.Tree) (object.Tree, error)) (*store.Record, error) {
	x.store.Lock()
	defer x.store.Unlock()
	old, err := x.existing()
	if err != nil {
		return nil, err
	}
	after, err := change(x.typed(old))
	if err != nil {
		return nil, err
	}
	if err := writer.CheckPatched(x.def, x.request.Version, old, after); err != nil {
		return nil, err
	}
	out, _, err := x.writer.Update(x.c, x.key(), after, w)
	return out, err
}

// typed returns an object with the kind and apiVersion of this request.
func (x *call) typed(r *store.Record) object.Tree {
	tree := r.Tree()
	as := x.def.In(x.request.Version)
	tree["kind"], tree["apiVersion"] = as.Kind, as.GroupVersion().String()
	return tree
}

// changeOf returns the change of a patch of the given type.
func changeOf(kind types.PatchType, body []byte) (func(object.Tree) (object.Tree, error), error) {
	switch kind {
	case types.JSONPatchType:
		return jsonPatch(body)
	case types.MergePatchType:
		return mergePatch(body)
	}
	return nil, wire.Unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType))
}

// jsonPatch returns the change of an RFC 6902 patch. A malformed patch is a 400, and one that cannot be applied is a
// 422.
func jsonPatch(body []byte) (func(object.Tree) (object.Tree, error), error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	return objectChange(patch.Apply), nil
}

// mergePatch returns the change of an RFC 7386 patch.
func mergePatch(body []byte) (func(object.Tree) (object.Tree, error), error) {
	if _, err := object.Decode(body); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return objectChange(func(before []byte) ([]byte, error) { return jsonpatch.MergePatch(before, body) }), nil
}

// objectChange converts a change of JSON into a change of objects.
func objectChange(change func([]byte) ([]byte, error)) func(object.Tree) (object.Tree, error) {
	return func(before object.Tree) (object.Tree, error) {
		encoded, err := json.Marshal(before)
		if err != nil {
			return nil, fmt.Errorf("testserver: encode an object for a patch: %w", err)
		}
		changed, err := change(encoded)
		if err != nil {
			return nil, unappliable(err)
		}
		after, err := object.Decode(changed)
		if err != nil {
			return nil, unappliable(err)
		}
		return after, nil
	}
}

// unappliable returns the 422 for a patch that cannot be applied to the object.
func unappliable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}
