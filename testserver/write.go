package testserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// maxBody is the largest size in bytes of a request body that kube-apiserver accepts.
const maxBody = 3 << 20

// body reads the body of the request.
func (x *call) body() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(x.http.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read the request: %v", err))
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// contentType returns the media type of the request without parameters. Without the header it is JSON.
func (x *call) contentType() string {
	header := x.request.ContentType
	if header == "" {
		return "application/json"
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return kind
}

// object reads the body of the request as one object.
func (x *call) object() (object.Tree, error) {
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	switch x.contentType() {
	case "application/json":
	case "application/yaml":
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	default:
		return nil, unsupported("application/json", "application/yaml")
	}
	if string(bytes.TrimSpace(body)) == "null" && !x.def.Custom {
		return object.Tree{}, nil
	}
	tree, err := object.Decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized: %v", err))
	}
	return tree, x.validateFields(body)
}

// unsupported returns the 415 that lists the supported types.
func unsupported(kinds ...string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(kinds, ", "))
}

// write reads the parameters that all writes have.
func (x *call) write() (writer.Write, error) {
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
		return w, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("CreateOptions").GroupKind(), "", errs)
	}
	return w, nil
}

func (x *call) create() error {
	return x.submit(func(tree object.Tree, w writer.Write) (*store.Record, bool, error) {
		r, err := x.writer.Create(x.c, x.request.Namespace, tree, w)
		return r, true, err
	})
}

func (x *call) update() error {
	return x.submit(func(tree object.Tree, w writer.Write) (*store.Record, bool, error) {
		return x.writer.Update(x.c, x.key(), tree, w)
	})
}

// submit reads the object in the request, calls store under the lock, and answers with the stored object.
func (x *call) submit(store func(object.Tree, writer.Write) (r *store.Record, created bool, err error)) error {
	w, err := x.write()
	if err != nil {
		return err
	}
	tree, err := x.object()
	if err != nil {
		return err
	}
	x.store.Lock()
	r, created, err := store(tree, w)
	x.store.Unlock()
	if err != nil {
		return err
	}
	return x.respond(codeOf(created), r)
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// deleteOptions reads the options from the body, or from the query if there is no body.
func (x *call) deleteOptions() (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	body, err := x.body()
	if err != nil {
		return o, err
	}
	q := x.request.Query
	if len(body) > 0 {
		if kind := x.contentType(); kind != "application/json" {
			return o, unsupported("application/json")
		}
		if err := json.Unmarshal(body, &o); err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		if o.Kind != "" && o.Kind != "DeleteOptions" {
			return o, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
		}
	} else if err := queryDeleteOptions(&o, q); err != nil {
		return o, err
	}
	if len(o.DryRun) == 0 {
		o.DryRun = q["dryRun"]
	}
	if errs := metav1validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return o, invalidDelete(errs)
	}
	return o, nil
}

func (x *call) delete() error {
	o, err := x.deleteOptions()
	if err != nil {
		return err
	}
	x.store.Lock()
	d, err := x.writer.Delete(x.c, x.key(), o, writer.Write{DryRun: len(o.DryRun) > 0})
	x.store.Unlock()
	if err != nil {
		return err
	}
	switch {
	case !d.Done && writer.KeepsNoDependents(o):
		return x.respond(http.StatusAccepted, d.Record)
	case !d.Done || x.def.ReturnsDeleted:
		return x.respond(http.StatusOK, d.Record)
	}
	x.writeJSON(http.StatusOK, encodeStatus(metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: d.Record.Key.Name, Group: x.def.Group, Kind: x.def.Plural, UID: d.Record.UID,
		},
	}))
	return nil
}

func (x *call) deleteCollection() error {
	lo, err := parseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	if err := checkListOptions(lo); err != nil {
		return err
	}
	sel, err := store.NewSelection(x.def, x.request.Namespace, lo.LabelSelector, lo.FieldSelector)
	if err != nil {
		return err
	}
	o, err := x.deleteOptions()
	if err != nil {
		return err
	}
	x.store.Lock()
	items, err := x.writer.DeleteAll(x.c, sel, o, writer.Write{DryRun: len(o.DryRun) > 0})
	version := x.store.Version()
	x.store.Unlock()
	if err != nil {
		return err
	}
	return x.writeItems(metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}, items)
}
