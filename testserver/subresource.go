package testserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

func (x *call) hasSubresource() bool {
	return slices.ContainsFunc(x.def.Subresources(), func(s registry.Subresource) bool { return s.Name == x.request.Subresource })
}

// subresource returns the handler of a request for a subresource, or nil.
func (x *call) subresource() func() error {
	if !x.hasSubresource() {
		return nil
	}
	handlers := map[string]func() error{
		"status get": x.get, "status update": x.update, "status patch": x.patch,
		"scale get": x.getScale, "scale update": x.updateScale, "scale patch": x.patchScale,
		"eviction create": x.evict, "binding create": x.bind, "token create": x.token, "log get": x.getLog,
	}
	return handlers[x.request.Subresource+" "+x.request.Verb]
}

// respondTree writes an object that is not stored.
func (x *call) respondTree(code int, tree object.Tree) error {
	body, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("testserver: encode the answer: %w", err)
	}
	x.writeJSON(code, body)
	return nil
}

// existing returns the object that a request is about. The caller holds the lock.
func (x *call) existing() (*store.Record, error) {
	if r := x.c.Get(x.key()); r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(x.def.GroupResource(), x.request.Name)
}

// scaleOf converts an object into a Scale.
func scaleOf(r *store.Record) object.Tree {
	tree := r.Tree()
	meta, spec, status := object.Metadata(tree), object.MapAt(tree, "spec"), object.MapAt(tree, "status")
	replicas := func(m object.Tree) int64 {
		n, _ := object.IntAt(m, "replicas")
		return n
	}
	scale := object.Tree{
		"kind": "Scale", "apiVersion": "autoscaling/v1",
		"metadata": object.Tree{"name": r.Key.Name, "uid": string(r.UID), "resourceVersion": strconv.FormatUint(r.Version, 10)},
		"spec":     object.Tree{"replicas": replicas(spec)},
		"status":   object.Tree{"replicas": replicas(status)},
	}
	object.SetOrDrop(object.MapAt(scale, "metadata"), "namespace", meta["namespace"])
	object.SetOrDrop(object.MapAt(scale, "metadata"), "creationTimestamp", meta["creationTimestamp"])
	if selector, err := selectorOf(spec); err == nil && spec["selector"] != nil {
		object.MapAt(scale, "status")["selector"] = selector
	}
	return scale
}

func selectorOf(spec object.Tree) (string, error) {
	var selector metav1.LabelSelector
	encoded, err := json.Marshal(object.MapAt(spec, "selector"))
	if err == nil {
		err = json.Unmarshal(encoded, &selector)
	}
	if err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(&selector), nil
}

func (x *call) getScale() error {
	x.store.Lock()
	r, err := x.existing()
	x.store.Unlock()
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusOK, scaleOf(r))
}

func (x *call) updateScale() error {
	scale, err := wire.ReadObject(x.w, x.http, x.def, x.request.Version)
	if err != nil {
		return err
	}
	return x.rescale(func(object.Tree) (object.Tree, error) { return scale, nil })
}

func (x *call) patchScale() error {
	body, err := wire.ReadBody(x.http)
	if err != nil {
		return err
	}
	change, err := changeOf(types.PatchType(wire.ContentType(x.http)), body)
	if err != nil {
		return err
	}
	return x.rescale(change)
}

// rescale changes the Scale of an object and writes its replicas into the object.
func (x *call) rescale(change func(object.Tree) (object.Tree, error)) error {
	w, err := x.write()
	if err != nil {
		return err
	}
	w.Subresource = ""
	x.store.Lock()
	defer x.store.Unlock()
	old, err := x.existing()
	if err != nil {
		return err
	}
	scale, err := change(scaleOf(old))
	if err != nil {
		return err
	}
	replicas, _ := object.IntAt(object.MapAt(scale, "spec"), "replicas")
	tree := x.typed(old)
	object.SetDefault(tree, "spec", object.Tree{})
	object.MapAt(tree, "spec")["replicas"] = replicas
	if version := object.StringAt(object.MapAt(scale, "metadata"), "resourceVersion"); version != "" {
		object.Metadata(tree)["resourceVersion"] = version
	}
	r, _, err := x.writer.Update(x.c, x.key(), tree, w)
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusOK, scaleOf(r))
}

// evict deletes a pod. There are no disruption budgets, so an eviction is never rejected for them.
func (x *call) evict() error {
	w, err := x.write()
	if err != nil {
		return err
	}
	eviction, err := wire.ReadObject(x.w, x.http, x.def, x.request.Version)
	if err != nil {
		return err
	}
	var o metav1.DeleteOptions
	if options, ok := eviction["deleteOptions"]; ok {
		encoded, err := json.Marshal(options)
		if err == nil {
			err = json.Unmarshal(encoded, &o)
		}
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	x.store.Lock()
	_, err = x.writer.Delete(x.c, x.key(), o, writer.Write{DryRun: w.DryRun || len(o.DryRun) > 0})
	x.store.Unlock()
	if err != nil {
		return err
	}
	return x.created()
}

// created answers an action that returns no object.
func (x *call) created() error {
	x.writeJSON(http.StatusCreated, wire.EncodeStatus(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}))
	return nil
}

// bind assigns a pod to a node. A second bind is a conflict.
func (x *call) bind() error {
	w, err := x.write()
	if err != nil {
		return err
	}
	binding, err := wire.ReadObject(x.w, x.http, x.def, x.request.Version)
	if err != nil {
		return err
	}
	node := object.StringAt(object.MapAt(binding, "target"), "name")
	x.store.Lock()
	defer x.store.Unlock()
	old, err := x.existing()
	if err != nil {
		return err
	}
	tree := x.typed(old)
	object.SetDefault(tree, "spec", object.Tree{})
	spec := object.MapAt(tree, "spec")
	if have := object.StringAt(spec, "nodeName"); have != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, old.Key.Name,
			fmt.Errorf("pod %s is already assigned to node %q", old.Key.Name, have))
	}
	spec["nodeName"] = node
	if _, _, err := x.writer.Update(x.c, x.key(), tree, writer.Write{Served: x.request.Version, Subresource: "binding", DryRun: w.DryRun}); err != nil {
		return err
	}
	return x.created()
}

// token answers a TokenRequest. The token names its service account; the server does not accept it.
func (x *call) token() error {
	if _, err := x.write(); err != nil {
		return err
	}
	request, err := wire.ReadObject(x.w, x.http, x.def, x.request.Version)
	if err != nil {
		return err
	}
	x.store.Lock()
	_, err = x.existing()
	id := x.store.NewUID()
	x.store.Unlock()
	if err != nil {
		return err
	}
	object.SetDefault(request, "spec", object.Tree{})
	seconds, ok := object.IntAt(object.MapAt(request, "spec"), "expirationSeconds")
	if !ok {
		seconds = int64(time.Hour / time.Second)
	}
	request["status"] = object.Tree{
		"token":               "token-of-" + api.FormatKey(x.key()) + "-" + id,
		"expirationTimestamp": time.Now().UTC().Add(time.Duration(seconds) * time.Second).Format(time.RFC3339),
	}
	return x.respondTree(http.StatusCreated, request)
}
