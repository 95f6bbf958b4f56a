package testserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// maxPatchOperations is the largest number of operations that kube-apiserver accepts in a JSON patch.
const maxPatchOperations = 10_000

// maxCopied is the number of bytes by which the copies of a JSON patch may enlarge an object in kube-apiserver.
const maxCopied = 3 << 20

// The library has one limit for the whole program. It is set before main, because the library reads it without a lock.
var _ = limitCopies()

func limitCopies() bool {
	jsonpatch.AccumulatedCopySizeLimit = maxCopied
	return true
}

// patch applies a JSON patch, a merge patch, a strategic merge patch or server-side apply. Strategic merge patches need
// the schemas of the built-in types. Without them the server answers 415, as kube-apiserver does for custom resources.
func (x *call) patch() error {
	kind, err := x.patchType()
	if err != nil {
		return err
	}
	if kind == types.ApplyYAMLPatchType {
		return x.apply()
	}
	w, err := x.parameters()
	if err != nil {
		return err
	}
	p, err := x.readPatch(kind)
	if err != nil {
		return err
	}
	return x.submitPatch(w, p)
}

// patchType returns the kind of patch that a request sends. kube-apiserver words the answer to an unknown one
// differently for built-in and for custom resources, because other code serves them.
func (x *call) patchType() (types.PatchType, error) {
	kind := types.PatchType(wire.ContentType(x.http))
	known := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType}
	switch {
	case slices.Contains(known, kind), kind == types.StrategicMergePatchType && x.strategic() != nil:
		return kind, nil
	case kind != types.StrategicMergePatchType && !x.def.Custom:
		err := wire.Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
		err.ErrStatus.Details = &metav1.StatusDetails{}
		return "", err
	}
	return "", wire.Unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType))
}

// strategic returns the strategic merge patches of what the request changes, or nil.
func (x *call) strategic() registry.MergePatch {
	switch {
	case x.request.Subresource != scaleSubresource:
		return x.def.StrategicMerge
	case x.def.StrategicMerge == nil || x.def.Scaling == nil:
		return nil
	}
	return x.def.Scaling.Merge
}

// patch is a change in the body of a request.
type patch struct {
	change   func(before object.Tree) (object.Tree, error)
	problems []string // members that occur twice, and unknown ones
	// shown returns the text of the result in the errors about it.
	shown     func(before, after object.Tree) string
	strategic bool
}

// readPatch reads a patch, except for server-side apply.
func (x *call) readPatch(kind types.PatchType) (*patch, error) {
	if x.request.Query.Has("force") {
		return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	body, err := wire.ReadBody(x.http)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	checked := x.request.Query.Get("fieldValidation") != metav1.FieldValidationIgnore
	p := &patch{shown: x.patchedText}
	if checked {
		p.problems = object.Duplicates(body)
	}
	switch kind {
	case types.JSONPatchType:
		var unknown []string
		p.change, unknown, err = jsonPatch(body, checked)
		for i, text := range p.problems {
			p.problems[i] = "json patch " + text
		}
		p.problems = append(p.problems, unknown...)
	case types.MergePatchType:
		p.change, err = mergePatch(body)
	default:
		err = x.strategicPatch(p, body)
	}
	return p, err
}

// strategicPatch reads a strategic merge patch. Its errors show the patch instead of the result.
func (x *call) strategicPatch(p *patch, body []byte) error {
	change := object.Tree{}
	if !isNull(body) {
		var err error
		if change, err = object.Decode(body); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	merge := x.strategic()
	p.change = func(before object.Tree) (object.Tree, error) { return merge(x.request.Version, before, change) }
	p.shown = func(object.Tree, object.Tree) string { return fmt.Sprintf("%+v", change) }
	p.strategic = true
	return nil
}

func isNull(body []byte) bool { return string(bytes.TrimSpace(body)) == "null" }

// patchedText returns the JSON of a patched object as kube-apiserver shows it. The members of a Go type keep their
// order where the patch has changed nothing.
func (x *call) patchedText(before, after object.Tree) string {
	if x.def.Custom {
		return string(object.EncodeLike(nil, after)) // in alphabetical order
	}
	encoded, err := x.def.Schema.Encode(wire.JSON, before)
	if err != nil {
		encoded = nil // the order is only for the eye
	}
	return string(object.EncodeLike(encoded, after))
}

// patchOperation has the members that kube-apiserver expects in an operation of a JSON patch.
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// jsonPatch returns the change of an RFC 6902 patch. A malformed patch is a 400, and one that cannot be applied is a
// 422. If the patch is checked, unknown are the members that no operation has.
func jsonPatch(body []byte, checked bool) (change func(object.Tree) (object.Tree, error), unknown []string, err error) {
	if checked {
		var operations []patchOperation
		if err := json.Unmarshal(body, &operations); err != nil {
			text := strings.ReplaceAll(err.Error(), "[]testserver.patchOperation", "[]handlers.jsonPatchOp")
			text = strings.ReplaceAll(text, "patchOperation.", "jsonPatchOp.")
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + text)
		}
		unknown = unknownMembers(body)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > maxPatchOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	return objectChange(func(before []byte) ([]byte, error) { return applied(patch, before) }), unknown, nil
}

// applied applies a patch to a document. The library panics for some patches, such as a replacement of the whole
// document without a value. kube-apiserver panics too; here such a patch cannot be applied.
func applied(patch jsonpatch.Patch, doc []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("testserver: apply a JSON patch: %v", p)
		}
	}()
	return patch.Apply(doc)
}

// unknownMembers returns a message for each member of a JSON patch that operations do not have.
func unknownMembers(body []byte) []string {
	var operations []map[string]any
	if json.Unmarshal(body, &operations) != nil {
		return nil // an operation is null
	}
	var out []string
	for i, o := range operations {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !slices.Contains([]string{"op", "path", "from", "value"}, name) {
				out = append(out, fmt.Sprintf("json patch unknown field \"[%d].%s\"", i, name))
			}
		}
	}
	return out
}

// mergePatch returns the change of an RFC 7386 patch.
func mergePatch(body []byte) (func(object.Tree) (object.Tree, error), error) {
	if isNull(body) {
		return nil, apierrors.NewBadRequest(jsonpatch.ErrBadJSONPatch.Error())
	}
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
			return nil, noObject(changed, err)
		}
		return after, nil
	}
}

// noObject returns the error for a patch whose result is not a JSON object. kube-apiserver reads the kind first.
func noObject(result []byte, err error) error {
	var kind struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if wrong := json.Unmarshal(result, &kind); wrong != nil {
		err = fmt.Errorf("couldn't get version/kind; json parse error: %w", wrong)
	}
	return unpatchable(string(result), err.Error())
}

// report treats the problems of a patch and of its result as the parameter fieldValidation says: they are warnings, an
// error, or nothing.
func (x *call) report(p *patch, problems []string, before, after object.Tree) (warnings []string, err error) {
	problems = slices.Concat(p.problems, problems)
	switch directive := x.request.Query.Get("fieldValidation"); {
	case len(problems) == 0 || directive == metav1.FieldValidationIgnore:
		return nil, nil
	case directive == metav1.FieldValidationStrict:
		return nil, unpatchable(p.shown(before, after), "strict decoding error: "+strings.Join(problems, ", "))
	}
	return problems, nil
}

// unpatchable returns the 422 for a patch whose result is not an object of its kind.
func unpatchable(result, why string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), result, why)})
}

// unappliable returns the 422 for a patch that cannot be applied to the object.
func unappliable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// apply is server-side apply (KEP-555). The manager becomes an owner of the fields in its configuration. Fields that it
// applied before and omits now are removed unless another manager owns them. A field that another manager owns with a
// different value is a conflict, unless the request sets force. Without types, a list has one owner.
func (x *call) apply() error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	q := x.request.Query
	if w.Manager = q.Get("fieldManager"); w.Manager == "" {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	config, err := wire.ReadConfiguration(x.http)
	if err != nil {
		return err
	}
	meta, _ := config["metadata"].(object.Tree)
	if len(object.SliceAt(meta, "managedFields")) > 0 {
		return apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if gvk := schema.FromAPIVersionAndKind(object.StringAt(config, "apiVersion"), object.StringAt(config, "kind")); gvk != x.kind() {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", gvk))
	}
	return x.submitApply(w, config, wire.BoolParam(q, "force"))
}

// kind returns the kind of what the request is about: an object, or a subresource of another kind.
func (x *call) kind() schema.GroupVersionKind {
	if kind, version := x.def.SubresourceKind(x.request.Version, x.request.Subresource); kind != "" {
		return schema.FromAPIVersionAndKind(version, kind)
	}
	return x.def.In(x.request.Version).GroupVersionKind()
}
