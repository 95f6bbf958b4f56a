package testserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
)

// view is a state of one collection for reads.
type view struct {
	version uint64
	root    *node
}

// present returns the state that reads use: the newest, or an older one if a Stale fault is active.
func (x *call) present() view {
	if v, ok := x.faults.stale(x); ok {
		return v
	}
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	return view{version: x.store.version, root: x.c.root}
}

// key returns the key of the object in the request.
func (x *call) key() api.Key {
	if !x.def.Namespaced {
		return api.Key{Name: x.request.Name}
	}
	return api.Key{Namespace: x.request.Namespace, Name: x.request.Name}
}

func (x *call) get() error {
	want, err := parseVersion(x.request.Query.Get("resourceVersion"), false)
	if err != nil {
		return err
	}
	v, err := x.waitFor(x.http.Context(), want)
	if err != nil {
		return err
	}
	r := v.root.get(pathOf(x.key()))
	if r == nil {
		return apierrors.NewNotFound(x.def.GroupResource(), x.request.Name)
	}
	x.faults.countPast(v.version)
	return x.respond(http.StatusOK, r)
}

// waitFor waits up to Options.VersionWait until the server is at a version. It fails if the server does not reach it.
func (x *call) waitFor(ctx context.Context, want uint64) (view, error) {
	v := x.present()
	if v.version >= want {
		return v, nil
	}
	if x.options.VersionWait <= 0 {
		return v, tooLarge(want, v.version)
	}
	timer := time.NewTimer(x.options.VersionWait)
	defer timer.Stop()
	for {
		advanced := x.store.nextVersion() // before the look at the version, so that no change is missed
		if v = x.present(); v.version >= want {
			return v, nil
		}
		select {
		case <-advanced:
		case <-timer.C:
			return v, tooLarge(want, v.version)
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// page is one answer to a list.
type page struct {
	view
	selection
	from  string // path of the first item
	limit int    // 0 means no limit
}

func (x *call) list() error {
	o, err := parseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	if err := checkListOptions(o); err != nil {
		return err
	}
	sel, err := newSelection(x.def, x.request.Namespace, o.LabelSelector, o.FieldSelector)
	if err != nil {
		return err
	}
	p, err := x.page(o)
	if err != nil {
		return err
	}
	p.selection = sel
	x.faults.countPast(p.version)
	return x.writeList(p)
}

// page returns the state and the part of it that answers a list.
func (x *call) page(o metav1.ListOptions) (page, error) {
	if o.Continue != "" {
		return x.continued(o)
	}
	want, err := parseVersion(o.ResourceVersion, true)
	if err != nil {
		return page{}, err
	}
	p := page{limit: int(max(o.Limit, 0))}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && p.limit > 0 && want > 0
	if o.ResourceVersion == "0" && !x.options.NoWatchCache {
		p.limit = 0 // a watch cache ignores the limit for version 0
	}
	if p.view, err = x.waitFor(x.http.Context(), want); err != nil {
		return page{}, err
	}
	if exact {
		p.view, err = x.exactView(want)
	}
	return p, err
}

// exactView returns the state at a version that the server has reached.
func (x *call) exactView(version uint64) (view, error) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	root, ok := x.c.stateAt(version)
	if !ok {
		x.faults.countExpired(version)
		return view{}, expired("The resourceVersion for the provided list is too old.")
	}
	return view{version: version, root: root}, nil
}

// continued returns the page that a continue token requests.
func (x *call) continued(o metav1.ListOptions) (page, error) {
	t, err := decodeToken(o.Continue)
	if err != nil {
		return page{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	p := page{from: t.Start, limit: int(max(o.Limit, 0))}
	if t.Version < 0 {
		p.view = x.present()
		return p, nil
	}
	if p.view, err = x.waitFor(x.http.Context(), uint64(t.Version)); err != nil {
		return page{}, err
	}
	if p.view, err = x.exactView(uint64(t.Version)); err != nil {
		return page{}, tokenExpired(t.Start)
	}
	return p, nil
}

// collect returns the records of a page and the path where the next page starts, which is empty after the last record.
// It does not check whether the selectors match any later record, so the last page may be empty.
func (p page) collect() (items []*record, next string) {
	for r := range p.scan(p.root, p.from) {
		items = append(items, r)
		if len(items) == p.limit {
			if next = r.path + "\x00"; p.remaining(p.root, next) == 0 {
				next = ""
			}
			break
		}
	}
	return items, next
}

func (x *call) writeList(p page) error {
	items, next := p.collect()
	if next != "" && x.faults.ignoresLimit(x) {
		p.limit = 0
		items, next = p.collect()
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(p.version, 10)}
	if next != "" {
		meta.Continue = encodeToken(int64(p.version), next)
		if p.everything() {
			left := int64(p.remaining(p.root, next))
			meta.RemainingItemCount = &left
		}
	}
	return x.writeItems(meta, items)
}

// writeItems streams a list, so that the server never holds a whole encoded list in memory.
func (x *call) writeItems(meta metav1.ListMeta, items []*record) error {
	sh := x.shape()
	out, tail, err := sh.list(meta)
	if err != nil {
		return fmt.Errorf("testserver: encode list metadata: %w", err)
	}
	var w io.Writer = x.w
	if sizeOf(items) > compressFrom {
		if g, ok := x.compress(); ok {
			w = g
			defer g.finish()
		}
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	const chunk = 32 << 10
	first := true
	put := func(item []byte) bool {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, item...)
		if len(out) < chunk {
			return true
		}
		_, err := w.Write(out)
		out = out[:0]
		return err == nil
	}
	var buffer []byte
	for _, r := range items {
		buffer = sh.appendItem(buffer[:0], r)
		for _, item := range x.faults.items(x, r.key, buffer) {
			if !put(item) {
				return nil // the client has gone, or a fault cut the answer
			}
		}
	}
	for endless := x.faults.endless(x, len(items)); endless; {
		if !put(buffer) {
			return nil // as above
		}
	}
	_, _ = w.Write(append(out, tail...)) // an error means that the client has gone
	return nil
}

func sizeOf(items []*record) int {
	size := 0
	for _, r := range items {
		size += len(r.body)
	}
	return size
}

// list returns the JSON before and after the items of a list. The keys of custom resources are sorted, so a client gets
// the kind and the version only after the last item.
func (s shape) list(meta metav1.ListMeta) (head, tail []byte, err error) {
	if s.as == tableKind {
		return table(meta)
	}
	if s.custom && s.as == "" {
		members := object{"continue": meta.Continue, "resourceVersion": meta.ResourceVersion}
		if meta.RemainingItemCount != nil {
			members["remainingItemCount"] = *meta.RemainingItemCount
		}
		encoded, err := json.Marshal(members)
		head = append(strconv.AppendQuote([]byte(`{"apiVersion":`), s.apiVersion()), `,"items":[`...)
		tail = append(strconv.AppendQuote([]byte(`],"kind":`), s.kind()+"List"), `,"metadata":`...)
		return head, append(append(tail, encoded...), "}\n"...), err
	}
	encoded, err := json.Marshal(meta)
	head = strconv.AppendQuote([]byte(`{"kind":`), s.kind()+"List")
	head = strconv.AppendQuote(append(head, `,"apiVersion":`...), s.apiVersion())
	head = append(append(append(head, `,"metadata":`...), encoded...), `,"items":[`...)
	return head, []byte("]}\n"), err
}

// invalidDelete returns the 422 for invalid options of a deletion.
func invalidDelete(errs field.ErrorList) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
}
