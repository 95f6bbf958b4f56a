package testserver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// present returns the state that reads use: the newest, or an older one if a Stale fault is active.
func (x *call) present() store.View {
	if x.def.Compute != nil {
		return x.store.Computed(x.def)
	}
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
	sel, err := x.selection(o)
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

// selection returns the objects that a request selects.
func (x *call) selection(o metav1.ListOptions) (store.Selection, error) {
	sel, err := store.NewSelection(x.def, x.request.Version, x.request.Namespace, o.LabelSelector, o.FieldSelector)
	if err == nil && x.options.ShardedLists && o.ShardSelector != "" {
		err = sel.Cut(o.ShardSelector)
	}
	return sel, err
}

// page returns the state and the part of it that answers a list.
func (x *call) page(o metav1.ListOptions) (page, error) {
	if x.def.Compute != nil {
		return page{View: x.present()}, nil // such a list has neither pages nor versions
	}
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

// whole reports whether the page is the whole collection, or all of a namespace.
func (p page) whole() bool { return p.limit == 0 && p.from == "" && p.Everything() }

// collect returns the records of a page and the path where the next page starts, which is empty after the last record.
// It does not check whether the selectors match any later record, so the last page may be empty.
func (p page) collect() (items []*store.Record, next string) {
	if p.whole() {
		items = make([]*store.Record, 0, p.Remaining(p.View, ""))
	}
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
	var keep *keptList
	if p.whole() && x.media.Type == wire.JSON && x.media.As != wire.Table { // a table may have another order
		if kept := x.lists.find(p.View, x.request.Namespace, x.shape()); kept != nil {
			return x.writeStream(kept.shape, x.listMeta(p, ""), kept.items)
		}
		keep = &keptList{view: p.View, namespace: x.request.Namespace, shape: x.shape()}
	}
	items, next := p.collect()
	if next != "" && disturb.Answer[faults.IgnoreLimit](x.plan, x.target()) {
		p.limit = 0
		items, next = p.collect()
	}
	return x.writeItems(x.listMeta(p, next), items, keep)
}

// listMeta returns the metadata of a page whose next page starts at a path.
func (x *call) listMeta(p page, next string) metav1.ListMeta {
	if x.def.Compute != nil {
		return metav1.ListMeta{}
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(p.Version, 10)}
	if next != "" {
		meta.Continue = wire.EncodeToken(int64(p.Version), next)
		if p.Everything() {
			left := int64(p.Remaining(p.View, next))
			meta.RemainingItemCount = &left
		}
	}
	if !x.def.Custom && x.media.As == "" { // kube-apiserver does not send it with other lists
		meta.ShardInfo = p.Shard()
	}
	return meta
}

// writeItems writes a list, and keeps its items in keep, which may be nil.
func (x *call) writeItems(meta metav1.ListMeta, items []*store.Record, keep *keptList) error {
	sh, err := x.prepare(items)
	if err != nil {
		return err
	}
	if x.media.Type != wire.JSON {
		return x.writeWhole(sh, meta, items)
	}
	if keep != nil {
		keep.items = items
		x.lists.add(keep)
	}
	return x.writeStream(sh, meta, items)
}

// prepare returns the shape of a list, in which its items can be encoded, and sorts them as the shape wants.
func (x *call) prepare(items []*store.Record) (wire.Shape, error) {
	sh := x.shape()
	sh.Empty = len(items) == 0
	sh.Sort(items)
	if err := x.media.CheckListKind(true, x.def.TypeName(x.def.ListKindName())); err != nil {
		return sh, err
	}
	if x.media.Type != wire.JSON {
		return sh, nil // encoding checks them
	}
	for _, r := range items {
		if err := sh.Check(r); err != nil {
			return sh, err
		}
	}
	return sh, nil
}

// writeStream writes a list in JSON as a stream, so that the client gets the first items early.
func (x *call) writeStream(sh wire.Shape, meta metav1.ListMeta, items []*store.Record) error {
	w, end, err := x.beginList(sh, meta, items)
	if err != nil {
		return err
	}
	l := &listWriter{w: w, joiner: pipe.JoinerOf(x.w, x.http)}
	done := func() {}
	if len(items) >= leastKept {
		done = l.useBuffer()
	}
	if !x.encodeItems(l, sh, items) || !l.flush() {
		return nil // the client has gone, or a fault cut the answer
	}
	end()
	done()
	return nil
}

// encodeItems encodes the items of a list after the faults. It returns false if the client has gone, or if a fault cut
// the answer.
func (x *call) encodeItems(l *listWriter, sh wire.Shape, items []*store.Record) bool {
	var item []byte
	target := x.target()
	for _, r := range items {
		if !x.plan.Busy() {
			if !l.room(r.Size()) {
				return false
			}
			l.chunk = sh.AppendItem(l.chunk, r)
			continue
		}
		item = sh.AppendItem(item[:0], r)
		if !x.plan.Items(target, r.Key, wire.JSON, item, l.put) {
			return false
		}
	}
	if len(items) == 0 || !disturb.Answer[faults.EndlessList](x.plan, target) {
		return true
	}
	for item = sh.AppendItem(item[:0], items[len(items)-1]); l.put(item); {
	}
	return false
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
