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
)

// subresource is a part of an object, or an action on it, with its own path.
type subresource struct {
	name                 string
	kind, group, version string // empty means those of the object
	verbs                metav1.Verbs
}

var (
	statusSubresource = subresource{name: "status", verbs: metav1.Verbs{"get", "patch", "update"}}
	scaleSubresource  = subresource{
		name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: metav1.Verbs{"get", "patch", "update"},
	}
	evictionSubresource = subresource{
		name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: metav1.Verbs{"create"},
	}
	bindingSubresource = subresource{name: "binding", kind: "Binding", verbs: metav1.Verbs{"create"}}
	logSubresource     = subresource{name: "log", verbs: metav1.Verbs{"get"}}
	tokenSubresource   = subresource{
		name: "token", kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: metav1.Verbs{"create"},
	}
)

// subresources returns the subresources of a resource.
func (d *definition) subresources() []subresource {
	var out []subresource
	if !d.NoStatus {
		out = append(out, statusSubresource)
	}
	if d.scale {
		out = append(out, scaleSubresource)
	}
	switch d.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		out = append(out, evictionSubresource, bindingSubresource, logSubresource)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		out = append(out, tokenSubresource)
	}
	return out
}

func (x *call) hasSubresource() bool {
	return slices.ContainsFunc(x.def.subresources(), func(s subresource) bool { return s.name == x.request.Subresource })
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
func (x *call) respondTree(code int, tree object) error {
	body, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("testserver: encode the answer: %w", err)
	}
	x.writeJSON(code, body)
	return nil
}

// existing returns the object that a request is about. The caller holds the lock.
func (x *call) existing() (*record, error) {
	if r := x.c.root.get(pathOf(x.key())); r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(x.def.GroupResource(), x.request.Name)
}

// scaleOf converts an object into a Scale.
func scaleOf(r *record) object {
	tree := r.tree()
	meta, spec, status := metadataOf(tree), mapAt(tree, "spec"), mapAt(tree, "status")
	replicas := func(m object) int64 {
		n, _ := intAt(m, "replicas")
		return n
	}
	scale := object{
		"kind": "Scale", "apiVersion": "autoscaling/v1",
		"metadata": object{"name": r.key.Name, "uid": string(r.uid), "resourceVersion": strconv.FormatUint(r.version, 10)},
		"spec":     object{"replicas": replicas(spec)},
		"status":   object{"replicas": replicas(status)},
	}
	setOrDrop(mapAt(scale, "metadata"), "namespace", meta["namespace"])
	setOrDrop(mapAt(scale, "metadata"), "creationTimestamp", meta["creationTimestamp"])
	if selector, err := selectorOf(spec); err == nil && spec["selector"] != nil {
		mapAt(scale, "status")["selector"] = selector
	}
	return scale
}

func selectorOf(spec object) (string, error) {
	var selector metav1.LabelSelector
	encoded, err := json.Marshal(mapAt(spec, "selector"))
	if err == nil {
		err = json.Unmarshal(encoded, &selector)
	}
	if err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(&selector), nil
}

func (x *call) getScale() error {
	x.store.mu.Lock()
	r, err := x.existing()
	x.store.mu.Unlock()
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusOK, scaleOf(r))
}

func (x *call) updateScale() error {
	scale, err := x.object()
	if err != nil {
		return err
	}
	return x.rescale(func(object) (object, error) { return scale, nil })
}

func (x *call) patchScale() error {
	body, err := x.body()
	if err != nil {
		return err
	}
	change, err := changeOf(types.PatchType(x.contentType()), body)
	if err != nil {
		return err
	}
	return x.rescale(change)
}

// rescale changes the Scale of an object and writes its replicas into the object.
func (x *call) rescale(change func(object) (object, error)) error {
	w, err := x.write()
	if err != nil {
		return err
	}
	w.subresource = ""
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	old, err := x.existing()
	if err != nil {
		return err
	}
	scale, err := change(scaleOf(old))
	if err != nil {
		return err
	}
	replicas, _ := intAt(mapAt(scale, "spec"), "replicas")
	tree := x.typed(old)
	setDefault(tree, "spec", object{})
	mapAt(tree, "spec")["replicas"] = replicas
	if version := stringAt(mapAt(scale, "metadata"), "resourceVersion"); version != "" {
		metadataOf(tree)["resourceVersion"] = version
	}
	r, _, err := x.store.update(x.c, x.key(), tree, w)
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
	eviction, err := x.object()
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
	x.store.mu.Lock()
	_, err = x.store.delete(x.c, x.key(), o, write{dryRun: w.dryRun || len(o.DryRun) > 0})
	x.store.mu.Unlock()
	if err != nil {
		return err
	}
	return x.created()
}

// created answers an action that returns no object.
func (x *call) created() error {
	x.writeJSON(http.StatusCreated, encodeStatus(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}))
	return nil
}

// bind assigns a pod to a node. A second bind is a conflict.
func (x *call) bind() error {
	w, err := x.write()
	if err != nil {
		return err
	}
	binding, err := x.object()
	if err != nil {
		return err
	}
	node := stringAt(mapAt(binding, "target"), "name")
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	old, err := x.existing()
	if err != nil {
		return err
	}
	tree := x.typed(old)
	setDefault(tree, "spec", object{})
	spec := mapAt(tree, "spec")
	if have := stringAt(spec, "nodeName"); have != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, old.key.Name,
			fmt.Errorf("pod %s is already assigned to node %q", old.key.Name, have))
	}
	spec["nodeName"] = node
	if _, _, err := x.store.update(x.c, x.key(), tree, write{served: x.request.Version, manager: "binding", dryRun: w.dryRun}); err != nil {
		return err
	}
	return x.created()
}

// token answers a TokenRequest. The token names its service account; the server does not accept it.
func (x *call) token() error {
	if _, err := x.write(); err != nil {
		return err
	}
	request, err := x.object()
	if err != nil {
		return err
	}
	x.store.mu.Lock()
	_, err = x.existing()
	id := x.store.names.uid()
	x.store.mu.Unlock()
	if err != nil {
		return err
	}
	setDefault(request, "spec", object{})
	seconds, ok := intAt(mapAt(request, "spec"), "expirationSeconds")
	if !ok {
		seconds = int64(time.Hour / time.Second)
	}
	request["status"] = object{
		"token":               "token-of-" + api.FormatKey(x.key()) + "-" + id,
		"expirationTimestamp": time.Now().UTC().Add(time.Duration(seconds) * time.Second).Format(time.RFC3339),
	}
	return x.respondTree(http.StatusCreated, request)
}
