package testserver

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
