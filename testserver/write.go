package testserver

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// parametersKinds are the kinds that errors of parameters name. Admission sees other ones for a patch.
var parametersKinds = map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}

// parameters reads the parameters of a creation, an update or a patch.
func (x *call) parameters() (writer.Write, error) {
	q := x.request.Query
	w := writer.Write{Served: x.request.Version, Subresource: x.request.Subresource, Manager: q.Get("fieldManager")}
	if w.Manager == "" {
		w.Manager, _, _ = strings.Cut(x.request.UserAgent, "/")
	}
	var errs field.ErrorList
	w.DryRun = len(q["dryRun"]) > 0
	errs = append(errs, metav1validation.ValidateDryRun(field.NewPath("dryRun"), q["dryRun"])...)
	errs = append(errs, metav1validation.ValidateFieldManager(q.Get("fieldManager"), field.NewPath("fieldManager"))...)
	errs = append(errs, metav1validation.ValidateFieldValidation(field.NewPath("fieldValidation"), q.Get("fieldValidation"))...)
	if len(errs) > 0 {
		return w, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: parametersKinds[x.request.Verb]}, "", errs)
	}
	return w, nil
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// undeletable are the namespaces that clients cannot delete.
var undeletable = []string{"default", "kube-public", "kube-system"}

func (x *call) delete() error {
	o, err := wire.ParseDeleteOptions(x.http)
	if err != nil {
		return err
	}
	if x.def.IsNamespace() && slices.Contains(undeletable, x.request.Name) {
		return apierrors.NewForbidden(x.def.GroupResource(), x.request.Name, errors.New("this namespace may not be deleted"))
	}
	d, err := x.removed(o)
	if err != nil {
		return err
	}
	switch {
	case !d.Done && writer.KeepsNoDependents(o):
		return x.respond(http.StatusAccepted, d.Record)
	case !d.Done || x.def.ReturnsDeleted:
		return x.respond(http.StatusOK, d.Record)
	}
	wire.WriteStatusAs(x.w, x.media.Type, http.StatusOK, metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: d.Record.Key.Name, Group: x.def.Group, Kind: x.def.Plural, UID: d.Record.UID(),
		},
	})
	return nil
}

// deleteCollection deletes the objects of one page, and answers with the page. As in kube-apiserver, the list comes
// first, and an object that is created after it stays.
func (x *call) deleteCollection() error {
	lo, err := wire.ParseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	if err := wire.CheckListOptions(lo); err != nil {
		return err
	}
	sel, err := x.selection(lo)
	if err != nil {
		return err
	}
	o, err := wire.ParseDeleteOptions(x.http)
	if err != nil {
		return err
	}
	if lo.Limit == 0 { // kube-apiserver always reads pages, and a page with a version is of exactly this version
		lo.Limit = math.MaxInt32
	}
	x.staleDecided = true // Stale affects reads alone
	p, err := x.page(lo)
	if err != nil {
		return err
	}
	p.Selection = sel
	items, next := p.collect()
	if err := x.removeAll(items, o); err != nil {
		return err
	}
	return x.writeItems(x.listMeta(p, next), items, nil)
}

// into returns the target of the body of the request.
func (x *call) into() registry.Target {
	return registry.Target{Served: x.request.Version, Subresource: x.request.Subresource}
}

// submission returns the write of this request.
func (x *call) submission(w writer.Write, change func(object.Tree) (object.Tree, error)) *writer.Submission {
	s := &writer.Submission{
		Write: w, Collection: x.c, Key: x.key(), User: x.user, Verb: x.request.Verb, Admission: x.extension.Admission,
		Options: x.writeOptions(w), Change: change,
	}
	if w.Subresource == scaleSubresource {
		s.View = scaleView{x}
	}
	return s
}

// writeOptions returns the options of a creation or an update as admission sees them. The writer adds the kind, because
// a patch or an update may create the object.
func (x *call) writeOptions(w writer.Write) object.Tree {
	out := object.Tree{}
	if w.DryRun {
		out["dryRun"] = []any{metav1.DryRunAll}
	}
	for _, name := range []string{"fieldManager", "fieldValidation"} {
		if value := x.request.Query.Get(name); value != "" {
			out[name] = value
		}
	}
	return out
}

// submitBody creates or replaces an object with the body of the request.
func (x *call) submitBody() error {
	w, err := x.parameters()
	if err != nil {
		return err
	}
	buffer := wire.TakeBuffer()
	defer buffer.Release()
	body, err := wire.AppendBody(buffer.Bytes, x.http)
	if err != nil {
		return err
	}
	buffer.Bytes = body
	to := x.into()
	to.Values = &registry.Values{}
	tree, err := wire.DecodeObject(x.w, x.http, x.def, to, wire.ContentType(x.http), body)
	if err != nil {
		return err
	}
	if x.request.Verb == "update" && object.StringAt(object.Metadata(tree), "name") == "" {
		return x.nameless()
	}
	first := true
	s := x.submission(w, func(object.Tree) (object.Tree, error) {
		if first {
			first = false
			return tree, nil
		}
		again, _, err := x.def.Schema.Decode(to, wire.ContentType(x.http), body) // the first one is used up
		return again, err
	})
	s.Values = to.Values
	return x.submitted(s)
}

// nameless returns the answer to a body without the name of the object.
func (x *call) nameless() error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"the name of the object (%s based on URL) was undeterminable: name must be provided", x.request.Name))
}

// submitPatch changes an object by a JSON patch, a merge patch or a strategic merge patch.
func (x *call) submitPatch(w writer.Write, p *patch) error {
	values := &registry.Values{}
	reported := false
	s := x.submission(w, func(before object.Tree) (object.Tree, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(x.def.GroupResource(), x.request.Name)
		}
		tree, warnings, err := x.patchedTree(p, before, values)
		if !reported {
			warn(x.w, warnings)
			reported = true
		}
		return tree, err
	})
	s.Values = values
	return x.submitted(s)
}

// patchedTree applies a patch and decodes the result.
func (x *call) patchedTree(p *patch, before object.Tree, values *registry.Values) (tree object.Tree, warnings []string, err error) {
	after, err := p.change(before)
	if err != nil {
		return nil, nil, err
	}
	to := x.into()
	to.Patched, to.Values = true, values
	tree, problems, err := writer.DecodeTree(x.def, to, after)
	if wrong := new(registry.UndecodableError); errors.As(err, &wrong) {
		why := wrong.Err
		if p.strategic && wrong.Conversion != nil {
			why = wrong.Conversion
		}
		return nil, nil, unpatchable(p.shown(before, after), why.Error())
	}
	if err != nil {
		return nil, nil, err
	}
	if object.StringAt(object.Metadata(tree), "name") == "" {
		return nil, nil, x.nameless()
	}
	warnings, err = x.report(p, problems, before, after)
	return tree, warnings, err
}

// submitApply merges a configuration (server-side apply).
func (x *call) submitApply(w writer.Write, config object.Tree, force bool) error {
	managers := x.managers()
	if managers == nil {
		return wire.Unsupported(string(types.JSONPatchType), string(types.MergePatchType))
	}
	as := x.def.In(x.request.Version)
	to := x.into()
	to.Patched, to.Applied, to.Values = true, true, &registry.Values{}
	manager := registry.Manager{Name: w.Manager, Served: w.Served, Subresource: w.Subresource}
	s := x.submission(w, func(before object.Tree) (object.Tree, error) {
		missing := before == nil
		if missing {
			before = object.Tree{
				"kind": as.Kind, "apiVersion": as.GroupVersion().String(),
			}
			object.SetOrDrop(object.Metadata(before), "namespace", optional(x.key().Namespace))
		}
		after, err := managers.Applied(manager, before, config, force)
		if err != nil {
			return nil, err
		}
		if object.StringAt(object.Metadata(after), "name") == "" {
			return nil, x.nameless()
		}
		if uid := object.StringAt(object.Metadata(after), "uid"); missing && uid != "" {
			return nil, apierrors.NewConflict(x.def.GroupResource(), x.request.Name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		tree, _, err := writer.DecodeTree(x.def, to, after)
		return tree, err
	})
	s.Upsert, s.Applied, s.Values = true, true, to.Values
	return x.submitted(s)
}

// managers returns the managers of what the request changes: an object or its Scale.
func (x *call) managers() registry.Managers {
	if x.request.Subresource == scaleSubresource && x.def.Scaling != nil {
		return x.def.Scaling
	}
	return x.def.Managers
}

// optional returns nil for an empty text.
func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// submitted performs a write and answers with the stored object.
func (x *call) submitted(s *writer.Submission) error {
	r, created, err := x.writer.Submit(x.http.Context(), s)
	warn(x.w, s.Warnings)
	switch {
	case err != nil:
		return err
	case s.View != nil:
		return x.respondScale(r)
	}
	return x.respond(codeOf(created), r)
}

// warn adds the Warning headers that clients show to their users.
func warn(w http.ResponseWriter, warnings []string) {
	for _, text := range warnings {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", header)
		}
	}
}

// deletion returns the deletion of this request.
func (x *call) deletion(w writer.Write, o metav1.DeleteOptions) (*writer.Submission, error) {
	s := x.submission(w, nil)
	o.TypeMeta = metav1.TypeMeta{}
	var err error
	s.Options, err = object.From(o)
	return s, err
}

// removed deletes the object of the request.
func (x *call) removed(o metav1.DeleteOptions) (writer.Deletion, error) {
	w := writer.Write{Served: x.request.Version, DryRun: len(o.DryRun) > 0}
	s, err := x.deletion(w, o)
	if err != nil {
		return writer.Deletion{}, err
	}
	d, err := x.writer.SubmitDelete(x.http.Context(), s, o)
	warn(x.w, s.Warnings)
	return d, err
}

// removeAll deletes objects. It skips those that do not exist any more.
func (x *call) removeAll(items []*store.Record, o metav1.DeleteOptions) error {
	w := writer.Write{Served: x.request.Version, DryRun: len(o.DryRun) > 0}
	s, err := x.deletion(w, o)
	if err != nil {
		return err
	}
	err = x.writer.SubmitDeleteAll(x.http.Context(), s, items, o)
	warn(x.w, s.Warnings)
	return err
}
