package testserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// present returns the state that reads use: the newest, or an older one if a Stale fault is active.
func (x *call) present() store.View {
	if v, ok := x.staleView(); ok {
		return v
	}
	return x.store.View(x.c)
}

// key returns the key of the object in the request.
func (x *call) key() api.Key {
	if !x.def.Namespaced {
		return api.Key{Name: x.request.Name}
	}
	return api.Key{Namespace: x.request.Namespace, Name: x.request.Name}
}

func (x *call) get() error {
	want, err := wire.ParseVersion(x.request.Query.Get("resourceVersion"), false)
	if err != nil {
		return err
	}
	v, err := x.waitFor(x.http.Context(), want)
	if err != nil {
		return err
	}
	r := v.Get(x.key())
	if r == nil {
		return x.def.NotFound(x.request.Name)
	}
	x.plan.CountPast(v.Version)
	return x.respond(http.StatusOK, r)
}

// waitFor waits up to Options.VersionWait until the server is at a version. It fails if the server does not reach it.
func (x *call) waitFor(ctx context.Context, want uint64) (store.View, error) {
	v := x.present()
	if v.Version >= want {
		return v, nil
	}
	if x.options.VersionWait <= 0 {
		return v, wire.TooLarge(want, v.Version)
	}
	timer := time.NewTimer(x.options.VersionWait)
	defer timer.Stop()
	for {
		advanced := x.store.NextVersion() // before the look at the version, so that no change is missed
		if v = x.present(); v.Version >= want {
			return v, nil
		}
		select {
		case <-advanced:
		case <-timer.C:
			return v, wire.TooLarge(want, v.Version)
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// page is one answer to a list.
type page struct {
	store.View
	store.Selection
	from  string // path of the first item
	limit int    // 0 means no limit
}

func (x *call) list() error {
	o, err := wire.ParseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	if err := wire.CheckListOptions(o); err != nil {
		return err
	}
	sel, err := store.NewSelection(x.def, x.request.Version, x.request.Namespace, o.LabelSelector, o.FieldSelector)
	if err != nil {
		return err
	}
	p, err := x.page(o)
	if err != nil {
		return err
	}
	p.Selection = sel
	x.plan.CountPast(p.Version)
	return x.writeList(p)
}

// page returns the state and the part of it that answers a list.
func (x *call) page(o metav1.ListOptions) (page, error) {
	if o.Continue != "" {
		return x.continued(o)
	}
	want, err := wire.ParseVersion(o.ResourceVersion, true)
	if err != nil {
		return page{}, err
	}
	p := page{limit: int(max(o.Limit, 0))}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && p.limit > 0 && want > 0
	if o.ResourceVersion == "0" && !x.options.NoWatchCache {
		p.limit = 0 // a watch cache ignores the limit for version 0
	}
	if p.View, err = x.waitFor(x.http.Context(), want); err != nil {
		return page{}, err
	}
	if exact {
		p.View, err = x.exactView(want)
	}
	return p, err
}

// exactView returns the state at a version that the server has reached.
func (x *call) exactView(version uint64) (store.View, error) {
	v, ok := x.store.ViewAt(x.c, version)
	if !ok {
		x.plan.CountExpired(version)
		return v, wire.Expired("The resourceVersion for the provided list is too old.")
	}
	return v, nil
}

// continued returns the page that a continue token requests.
func (x *call) continued(o metav1.ListOptions) (page, error) {
	t, err := wire.DecodeToken(o.Continue)
	if err != nil {
		return page{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	p := page{from: t.Start, limit: int(max(o.Limit, 0))}
	if o.ResourceVersion == "0" && !x.options.NoWatchCache {
		p.limit = 0 // as on the first page
	}
	if t.Version < 0 {
		p.View = x.present()
		return p, nil
	}
	if p.View, err = x.waitFor(x.http.Context(), uint64(t.Version)); err != nil {
		return page{}, err
	}
	if p.View, err = x.exactView(uint64(t.Version)); err != nil {
		return page{}, wire.TokenExpired(t.Start)
	}
	return p, nil
}

// collect returns the records of a page and the path where the next page starts, which is empty after the last record.
// It does not check whether the selectors match any later record, so the last page may be empty.
func (p page) collect() (items []*store.Record, next string) {
	for r := range p.Scan(p.View, p.from) {
		items = append(items, r)
		if len(items) == p.limit {
			if next = r.Path + "\x00"; p.Remaining(p.View, next) == 0 {
				next = ""
			}
			break
		}
	}
	return items, next
}

func (x *call) writeList(p page) error {
	items, next := p.collect()
	if next != "" && disturb.Answer[faults.IgnoreLimit](x.plan, x.target()) {
		p.limit = 0
		items, next = p.collect()
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(p.Version, 10)}
	if next != "" {
		meta.Continue = wire.EncodeToken(int64(p.Version), next)
		if p.Everything() {
			left := int64(p.Remaining(p.View, next))
			meta.RemainingItemCount = &left
		}
	}
	return x.writeItems(meta, items)
}

// writeItems streams a list, so that the server never holds a whole encoded list in memory.
func (x *call) writeItems(meta metav1.ListMeta, items []*store.Record) error {
	sh := x.shape()
	sh.Empty = len(items) == 0
	if err := x.media.CheckListKind(true, x.def.TypeName(x.def.ListKindName())); err != nil {
		return err
	}
	if x.media.Type != wire.JSON {
		return x.writeWhole(sh, meta, items)
	}
	for _, r := range items {
		if err := sh.Check(r); err != nil {
			return err
		}
	}
	out, tail, err := sh.ListParts(meta)
	if err != nil {
		return fmt.Errorf("testserver: encode list metadata: %w", err)
	}
	var w io.Writer = x.w
	if x.options.Compress && sizeOf(items) > wire.CompressFrom {
		if g, ok := wire.Compress(x.w, x.http); ok {
			w = g
			defer g.Finish()
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
	buffer := make([]byte, 0, 1<<10)
	target := x.target()
	for _, r := range items {
		buffer = sh.AppendItem(buffer[:0], r)
		if !x.plan.Items(target, r.Key, wire.JSON, buffer, put) {
			return nil // the client has gone, or a fault cut the answer
		}
	}
	for endless := len(items) > 0 && disturb.Answer[faults.EndlessList](x.plan, target); endless; {
		if !put(buffer) {
			return nil // as above
		}
	}
	_, _ = w.Write(append(out, tail...)) // an error means that the client has gone
	return nil
}

// writeWhole writes a list in a media type that cannot be streamed.
func (x *call) writeWhole(sh wire.Shape, meta metav1.ListMeta, items []*store.Record) error {
	var encoded [][]byte
	var last []byte
	for _, r := range items {
		item, err := sh.Item(r)
		if err != nil {
			return err
		}
		x.plan.Items(x.target(), r.Key, x.media.Type, item, func(item []byte) bool {
			encoded = append(encoded, item)
			return true
		})
		last = item
	}
	body, err := sh.List(meta, encoded)
	if err != nil {
		return err
	}
	x.write(http.StatusOK, body)
	if len(last) > 0 && disturb.Answer[faults.EndlessList](x.plan, x.target()) {
		for err == nil { // the client has the whole list, but not the end of the answer
			_, err = x.w.Write(last)
		}
	}
	return nil
}

func sizeOf(items []*store.Record) int {
	size := 0
	for _, r := range items {
		size += r.Size()
	}
	return size
}
