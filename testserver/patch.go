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
)

// maxPatchOperations is how many operations kube-apiserver lets a JSON patch have.
const maxPatchOperations = 10_000

// patch changes an object by a JSON patch, a merge patch or server-side apply. Strategic merge patches need the schemas of the built-in
// types, which are not here: for every resource they are what kube-apiserver answers for custom ones, a 415.
func (x *call) patch() error {
	kind := types.PatchType(x.contentType())
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
	body, err := x.body()
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

// patched applies change to what is stored. Nothing comes between reading and writing, so there is nothing to retry; a
// patch that carries a resource version is checked against it like an update.
func (x *call) patched(w write, change func(object) (object, error)) (*record, error) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	old, err := x.existing()
	if err != nil {
		return nil, err
	}
	after, err := change(x.typed(old))
	if err != nil {
		return nil, err
	}
	if err := checkPatched(x.def, x.request.Version, old, after); err != nil {
		return nil, err
	}
	out, _, err := x.store.update(x.c, x.key(), after, w)
	return out, err
}

// typed returns an object with the kind and the version that it has in this request.
func (x *call) typed(r *record) object {
	tree := r.tree()
	as := x.def.in(x.request.Version)
	tree["kind"], tree["apiVersion"] = as.Kind, as.GroupVersion().String()
	return tree
}

// changeOf returns the change that a patch of a kind makes.
func changeOf(kind types.PatchType, body []byte) (func(object) (object, error), error) {
	switch kind {
	case types.JSONPatchType:
		return jsonPatch(body)
	case types.MergePatchType:
		return mergePatch(body)
	}
	return nil, unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType))
}

// jsonPatch returns the change that an RFC 6902 patch makes. A patch that does not apply is a 422, one that is no patch
// a 400.
func jsonPatch(body []byte) (func(object) (object, error), error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	return applied(patch.Apply), nil
}

// mergePatch returns the change that an RFC 7386 patch makes.
func mergePatch(body []byte) (func(object) (object, error), error) {
	if _, err := decodeObject(body); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return applied(func(before []byte) ([]byte, error) { return jsonpatch.MergePatch(before, body) }), nil
}

// applied lifts a change of bytes to objects.
func applied(change func([]byte) ([]byte, error)) func(object) (object, error) {
	return func(before object) (object, error) {
		encoded, err := json.Marshal(before)
		if err != nil {
			return nil, fmt.Errorf("encode an object for a patch: %w", err)
		}
		changed, err := change(encoded)
		if err != nil {
			return nil, unappliable(err)
		}
		after, err := decodeObject(changed)
		if err != nil {
			return nil, unappliable(err)
		}
		return after, nil
	}
}

// unappliable is the 422 for a patch that does not fit the object.
func unappliable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// checkPatched refuses what a patch has made of an object when that is no object of the kind any more, or another one.
func checkPatched(d *definition, served string, old *record, after object) error {
	patched, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode a patched object: %w", err)
	}
	r := d.in(served)
	kind, version := stringAt(after, "kind"), stringAt(after, "apiVersion")
	err = checkShape(after)
	if err == nil && !d.custom && (kind != r.Kind || version != r.GroupVersion().String()) {
		err = fmt.Errorf("the patch makes it a %s of %s", kind, version)
	}
	if err != nil {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(patched), err.Error()),
		})
	}
	if uid := stringAt(metadataOf(after), "uid"); uid != "" && uid != string(old.uid) {
		return invalid(d, old.key.Name, field.Invalid(metaPath.Child("uid"), uid, "field is immutable"))
	}
	return nil
}
