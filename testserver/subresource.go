package testserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

func (x *call) hasSubresource() bool { return x.part().Name != "" }

// part returns the subresource of the request, or the zero value.
func (x *call) part() registry.Subresource {
	for _, s := range x.def.SubresourcesIn(x.request.Version) {
		if s.Name == x.request.Subresource {
			return s
		}
	}
	return registry.Subresource{}
}

// subresource returns the handler of a request for a subresource, or nil.
func (x *call) subresource() func() error {
	if !x.hasSubresource() {
		return nil
	}
	handlers := map[string]func() error{
		"status get": x.get, "status update": x.submitBody, "status patch": x.patch, "finalize update": x.submitBody,
		"scale get": x.getScale, "scale update": x.submitBody, "scale patch": x.patch,
		"eviction create": x.evict, "binding create": x.bind, "token create": x.token, "log get": x.getLog,
	}
	if connect := x.connecting(); connect != nil {
		return connect
	}
	if act := x.def.Actions[x.request.Subresource]; act != nil && x.request.Verb == "create" {
		return func() error { return x.act(act) }
	}
	if handler := handlers[x.request.Subresource+" "+x.request.Verb]; handler != nil {
		return handler
	}
	return x.otherSubresource()
}

// otherSubresource returns the handler of a subresource that is a part of its object and has no rules of its own here:
// its Schema knows what it may change.
func (x *call) otherSubresource() func() error {
	part := func(s registry.Subresource) bool {
		return s.Name == x.request.Subresource && s.OfObject() && slices.Contains(s.Verbs, x.request.Verb)
	}
	if !slices.ContainsFunc(x.def.SubresourcesIn(x.request.Version), part) {
		return nil
	}
	return map[string]func() error{"get": x.get, "update": x.submitBody, "patch": x.patch}[x.request.Verb]
}

// respondTree writes an object that is not stored.
func (x *call) respondTree(code int, tree object.Tree) error {
	if err := x.media.CheckListKind(false, x.def.TypeName(object.StringAt(tree, "kind"))); err != nil {
		return err
	}
	body, err := x.media.EncodeTree(x.def, x.part().Columns, tree)
	if err != nil {
		return fmt.Errorf("testserver: encode the answer: %w", err)
	}
	x.write(code, body)
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
func scaleOf(tree object.Tree) object.Tree {
	meta, spec, status := object.Metadata(tree), object.MapAt(tree, "spec"), object.MapAt(tree, "status")
	replicas := func(m object.Tree) int64 {
		n, _ := object.IntAt(m, "replicas")
		return n
	}
	scale := object.Tree{
		"kind": "Scale", "apiVersion": "autoscaling/v1",
		"metadata": object.Tree{"name": meta["name"], "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
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
	return x.respondScale(r)
}

// evict deletes a pod if its disruption budget allows it.
func (x *call) evict() error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	return x.actOn(w, func(_ context.Context, act registry.Act) error { return x.evictWith(act.Tree, w, act.Validate) })
}

// evictWith deletes the pod of an eviction that admit allows.
func (x *call) evictWith(eviction object.Tree, w writer.Write, admit func() error) error {
	if object.StringAt(object.Metadata(eviction), "name") != x.request.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
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
	if err := admit(); err != nil {
		return err
	}
	w.Subresource, w.DryRun = "", w.DryRun || len(o.DryRun) > 0
	return x.writer.Evict(x.c, x.key(), o, w)
}

// created answers an action that returns no object.
func (x *call) created() error {
	wire.WriteStatusAs(x.w, x.media.Type, http.StatusCreated, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}

const bindingSubresource = "binding"

// errBindingName is the answer to a binding of another pod than that in the path.
var errBindingName = apierrors.NewBadRequest("name in URL does not match name in Binding object")

// token answers a TokenRequest. The token names its service account; the server does not accept it.
func (x *call) token() error {
	if _, err := x.parameters(); err != nil {
		return err
	}
	request, err := wire.ReadObject(x.w, x.http, x.def, x.into())
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

// scalePaths returns where the Scale of a custom resource with a schema has its values, or nil for other resources.
func (x *call) scalePaths() *registry.ScalePaths { return x.def.PerVersion[x.request.Version].Scale }

// scale returns the Scale of an object in the version of the request. found is false if the object has no replicas.
func (x *call) scale(tree object.Tree) (scale object.Tree, found bool, err error) {
	scale = scaleOf(tree)
	paths := x.scalePaths()
	if paths == nil {
		return scale, true, nil
	}
	replicas, found, err := unstructured.NestedInt64(tree, paths.Replicas...)
	if err != nil {
		return nil, false, err
	}
	have, _, err := unstructured.NestedInt64(tree, paths.StatusReplicas...)
	if err != nil {
		return nil, false, err
	}
	scale["spec"], scale["status"] = object.Tree{"replicas": replicas}, object.Tree{"replicas": have}
	if len(paths.Selector) == 0 {
		return scale, found, nil
	}
	selector, _, err := unstructured.NestedString(tree, paths.Selector...)
	if selector != "" {
		object.MapAt(scale, "status")["selector"] = selector
	}
	return scale, found, err
}

// existingScale is scale for a read, which needs replicas.
func (x *call) existingScale(tree object.Tree) (object.Tree, error) {
	scale, found, err := x.scale(tree)
	if err == nil && !found {
		err = fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(x.scalePaths().Replicas, "."))
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return scale, nil
}

// respondScale answers with the Scale of a stored object.
func (x *call) respondScale(r *store.Record) error {
	if err := x.shape().Check(r); err != nil {
		return err
	}
	scale, err := x.existingScale(x.shape().Tree(r))
	if err != nil {
		return err
	}
	return x.respondTree(http.StatusOK, scale)
}

const scaleSubresource = "scale"

// scaleView shows an object as its Scale. It implements writer.View.
type scaleView struct{ *call }

// Show returns the Scale of an object, with the managers of its replicas. Without replicas, the Scale has none either.
func (x scaleView) Show(tree object.Tree) (object.Tree, error) {
	scale, found, err := x.scale(tree)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !found {
		delete(object.MapAt(scale, "spec"), "replicas")
	}
	if x.def.Scaling == nil {
		return scale, nil
	}
	entries, err := x.def.Scaling.FromObject(x.request.Version, tree)
	object.SetOrDropList(object.Metadata(scale), "managedFields", entries)
	return scale, err
}

// Write returns a copy of an object with the replicas of a Scale, its version and its managers.
func (x scaleView) Write(tree, scale object.Tree) (object.Tree, error) {
	tree = runtime.DeepCopyJSON(tree)
	replicas, set := object.IntAt(object.MapAt(scale, "spec"), "replicas")
	path := []string{"spec", "replicas"}
	if paths := x.scalePaths(); paths != nil {
		path = paths.Replicas
		if _, found, err := x.scale(tree); err == nil && !found && !set {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+strings.Join(path, ".")))
		}
	}
	if err := unstructured.SetNestedField(tree, replicas, path...); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	object.SetOrDrop(object.Metadata(tree), "resourceVersion", object.Metadata(scale)["resourceVersion"])
	if x.def.Scaling == nil {
		return tree, nil
	}
	entries, err := x.def.Scaling.ToObject(x.request.Version, tree, scale)
	object.SetOrDropList(object.Metadata(tree), "managedFields", entries)
	return tree, err
}
