package testkit

import (
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
)

// Create stores an object as if a user had created it, and waits as Idle does.
func Create(k *Kit, r api.Resource, object any) {
	k.Helper()
	_, err := k.Server.Create(r, object)
	k.must("create", r, err)
}

// Get returns an object that the server holds. The test fails if there is no such object.
func Get[T any](k *Kit, r api.Resource, key api.Key) T {
	k.Helper()
	u, err := k.Server.Get(r, key)
	if err != nil {
		k.Fatalf("testkit: get %s %s: %v", r, api.FormatKey(key), err)
	}
	return convert[T](k, u)
}

// Has reports whether the server holds an object. A resource that the server does not have ends the test, because the
// answer would then be false for every object.
func Has(k *Kit, r api.Resource, key api.Key) bool {
	k.Helper()
	_, err := k.Server.Get(r, key)
	if err != nil && !apierrors.IsNotFound(err) {
		k.Fatalf("testkit: get %s %s: %v", r, api.FormatKey(key), err)
	}
	return err == nil
}

// List returns the objects of a namespace, sorted by key. The namespace "" means all.
func List[T any](k *Kit, r api.Resource, namespace string) []T {
	k.Helper()
	all, err := k.Server.List(r, namespace)
	if err != nil {
		k.Fatalf("testkit: list %s: %v", r, err)
	}
	objects := make([]T, 0, len(all))
	for _, u := range all {
		objects = append(objects, convert[T](k, u))
	}
	return objects
}

// Edit changes an object, including its status, as another client would, and waits as Idle does. T must declare all
// fields of the object, because Edit deletes the others. change must not use the kit: the server is locked meanwhile,
// so the call would not return.
func Edit[T any](k *Kit, r api.Resource, key api.Key, change func(T)) {
	k.Helper()
	_, err := k.Server.Edit(r, key, func(u *unstructured.Unstructured) {
		object := convert[T](k, u)
		change(object)
		raw, err := json.Marshal(object)
		if err == nil {
			u.Object = nil
			err = json.Unmarshal(raw, &u.Object)
		}
		if err != nil {
			k.Fatalf("testkit: edit %s %s: %v", r, api.FormatKey(key), err)
		}
	})
	k.must("edit", r, err)
}

// Delete deletes an object as a user would, and waits as Idle does.
func Delete(k *Kit, r api.Resource, key api.Key) {
	k.Helper()
	k.must("delete", r, k.Server.Delete(r, key))
}

func (k *Kit) must(verb string, r api.Resource, err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("testkit: %s %s: %v", verb, r, err)
	}
	k.Idle()
}

func convert[T any](k *Kit, u *unstructured.Unstructured) (object T) {
	k.Helper()
	raw, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		k.Fatalf("testkit: decode a %T: %v", object, err)
	}
	return object
}

// EventReasons returns the reasons of the Events about objects of a kind, in both APIs of Events: sorted, and each
// reason once.
func EventReasons(k *Kit, kind string) []string {
	k.Helper()
	type about struct{ Kind string }
	type event struct {
		Reason         string
		Regarding      about // in events.k8s.io
		InvolvedObject about // in the core API
	}
	reasons := []string{}
	for _, group := range []string{"", "events.k8s.io"} {
		events := api.Resource{Group: group, Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
		for _, e := range List[event](k, events, "") {
			if e.InvolvedObject.Kind == kind || e.Regarding.Kind == kind {
				reasons = append(reasons, e.Reason)
			}
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
