package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Patch is a change of a part of an object, with its format.
type Patch struct {
	Type types.PatchType // types.JSONPatchType, MergePatchType, StrategicMergePatchType, ApplyPatchType
	Data []byte
}

// MergePatch makes a JSON merge patch (RFC 7386) from a value that encoding/json can write. A null removes a field, a
// missing field stays, and lists are replaced. Every resource supports it.
func MergePatch(v any) (Patch, error) { return newPatch(types.MergePatchType, v) }

// StrategicPatch makes a strategic merge patch, which merges lists by their keys. Only types that are compiled into
// kube-apiserver support it.
func StrategicPatch(v any) (Patch, error) { return newPatch(types.StrategicMergePatchType, v) }

// JSONPatch makes a JSON patch (RFC 6902) of operations.
func JSONPatch(operations ...JSONPatchOperation) (Patch, error) {
	return newPatch(types.JSONPatchType, operations)
}

// JSONPatchOperation is one operation of a JSON patch. If the first one is a "test", the patch is conditional.
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

// PatchOptions are the options of a patch. They correspond to metav1.PatchOptions.
type PatchOptions struct {
	// Subresource is "status" or "scale", for example, or "" for the object itself.
	Subresource string
	// FieldManager is the owner of the changed fields. Empty means Config.FieldManager.
	FieldManager string
	// Force takes fields over from other managers instead of failing with a conflict. Only a patch of ApplyPatchType
	// may have it.
	Force bool
	// FieldValidation says what the server does with unknown and duplicate fields: "Ignore", "Warn" or "Strict". Empty
	// means "Warn".
	FieldValidation string
	// DryRun is empty or metav1.DryRunAll. With it, the server answers and stores nothing.
	DryRun []string
}

// toAPI returns the options in the form of the API.
func (o PatchOptions) toAPI() *metav1.PatchOptions {
	options := &metav1.PatchOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
	if o.Force {
		options.Force = &o.Force
	}
	return options
}

// ApplyOptions are the options of a server-side apply. They correspond to metav1.ApplyOptions.
type ApplyOptions struct {
	// Subresource is "status" or "scale", for example, or "" for the object itself.
	Subresource string
	// FieldManager is the owner of the applied fields. Empty means Config.FieldManager. One of them is required.
	FieldManager string
	// Force takes fields over from other managers instead of failing with a conflict.
	Force bool
	// DryRun is empty or metav1.DryRunAll. With it, the server answers and stores nothing.
	DryRun []string
}

// applyPatch encodes an intent as the body of a server-side apply. The server requires the type and the name of the
// object in it. Missing ones are added; different ones are an error.
func (e endpoint) applyPatch(key api.Key, intent any) (Patch, error) {
	data, err := json.Marshal(intent)
	if err != nil {
		return Patch{}, fmt.Errorf("apiclient: encode a %T: %w", intent, err)
	}
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return Patch{}, fmt.Errorf("apiclient: a %T is not encoded as a JSON object", intent)
	}
	if raw, ok := object["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return Patch{}, errors.New("apiclient: metadata is not a JSON object")
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	err = errors.Join(
		setDefault(object, "apiVersion", e.resource.GroupVersion().String()),
		setDefault(object, "kind", e.resource.Kind),
		setDefault(metadata, "name", key.Name),
		setDefault(metadata, "namespace", key.Namespace),
	)
	if err != nil {
		return Patch{}, err
	}
	// A typed value encodes a time that is not set as null, and the server would treat it as a field to own.
	if string(metadata["creationTimestamp"]) == "null" {
		delete(metadata, "creationTimestamp")
	}
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return Patch{}, err
	}
	return newPatch(types.ApplyPatchType, object)
}

// setDefault sets a field that is missing or empty. Another value is an error.
func setDefault(object map[string]json.RawMessage, field, want string) error {
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
