package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Patch is a change of a part of an object: what it is written in, and its bytes.
type Patch struct {
	Type types.PatchType // types.JSONPatchType, MergePatchType, StrategicMergePatchType, ApplyPatchType
	Data []byte
}

// MergePatch makes a JSON merge patch (RFC 7386) of anything that encoding/json can write: what is null is removed,
// what is absent stays, lists are replaced whole. Every resource understands it.
func MergePatch(v any) (Patch, error) { return newPatch(types.MergePatchType, v) }

// StrategicPatch makes a strategic merge patch, which merges lists by their keys. Only the types that are built into
// kube-apiserver understand it.
func StrategicPatch(v any) (Patch, error) { return newPatch(types.StrategicMergePatchType, v) }

// JSONPatch makes a JSON patch (RFC 6902) of its operations.
func JSONPatch(operations ...JSONPatchOperation) (Patch, error) {
	return newPatch(types.JSONPatchType, operations)
}

// JSONPatchOperation is one step of a JSON patch. A "test" first makes the patch conditional.
type JSONPatchOperation struct {
	Op    string `json:"op"`   // add, remove, replace, move, copy, test
	Path  string `json:"path"` // a JSON pointer: /metadata/labels/app
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

func newPatch(t types.PatchType, v any) (Patch, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return Patch{}, fmt.Errorf("apiclient: make a patch of a %T: %w", v, err)
	}
	return Patch{Type: t, Data: data}, nil
}

// PatchOptions are those of the API, and the subresource that is meant: "status", "scale", or "" for the object itself.
type PatchOptions struct {
	metav1.PatchOptions
	Subresource string
}

// ApplyOptions are those of the API, and the subresource that is meant. FieldManager is needed; Force takes fields over
// from other managers instead of failing with a conflict.
type ApplyOptions struct {
	metav1.ApplyOptions
	Subresource string
}

// applyPatch writes an intent as the body of a server-side apply. The server wants to read in it what it is and which
// object is meant; what a typed value leaves out is filled in, what contradicts is an error.
func (e endpoint) applyPatch(key api.Key, intent any) (Patch, error) {
	data, err := json.Marshal(intent)
	if err != nil {
		return Patch{}, fmt.Errorf("apiclient: write a %T: %w", intent, err)
	}
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return Patch{}, fmt.Errorf("apiclient: a %T is not written as an object", intent)
	}
	if raw, ok := object["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return Patch{}, errors.New("apiclient: metadata is not an object")
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	err = errors.Join(
		settle(object, "apiVersion", e.resource.GroupVersion().String()),
		settle(object, "kind", e.resource.Kind),
		settle(metadata, "name", key.Name),
		settle(metadata, "namespace", key.Namespace),
	)
	if err != nil {
		return Patch{}, err
	}
	// Typed values write a time that is not set as null, which the server would read as a claim to the field.
	if string(metadata["creationTimestamp"]) == "null" {
		delete(metadata, "creationTimestamp")
	}
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return Patch{}, err
	}
	return newPatch(types.ApplyPatchType, object)
}

// settle fills in a field that is absent or empty, and refuses one that says something else.
func settle(object map[string]json.RawMessage, field, want string) error {
	var have string
	if raw, ok := object[field]; ok {
		if err := json.Unmarshal(raw, &have); err != nil {
			return fmt.Errorf("apiclient: %s is not a string", field)
		}
	}
	switch {
	case have == want, want == "":
		return nil
	case have != "":
		return fmt.Errorf("apiclient: %s is %q in the object and %q in the call", field, have, want)
	}
	raw, err := json.Marshal(want)
	object[field] = raw
	return err
}
