package writer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Submission is a write. Its methods take the lock for short times only: not while they validate, nor during admission.
// If the object changes in between, they begin again.
type Submission struct {
	Write
	Collection *store.Collection
	Key        api.Key // the name of a creation is that in the path: admission sees it, the object need not have it
	User       registry.User
	Verb       string // as in testserver.Request
	Options    object.Tree
	Admission  extension.Admission // nil: everything is admitted
	// Change returns the new object in the served version, with kind and apiVersion. before is the stored object in the
	// same form, or nil if the object does not exist; Change must not modify it. It may be called more than once.
	Change func(before object.Tree) (object.Tree, error)
	Upsert bool // create the object if it does not exist, also where updates do not create
	// Applied says that managedFields are right already.
	Applied bool
	// View is not nil for a subresource of another kind. Change then gets and returns the view of the object, and
	// admission sees the view. The Values are not used.
	View     View
	Warnings []string // what clients should be told
	// Values has the Go value of what Change returned, if the Schema decoded it. It may be nil.
	Values *registry.Values

	def *registry.Definition // of Collection when the attempt began
}

// View shows an object as an object of another kind: a Scale.
type View interface {
	// Show returns the view of an object in the served version.
	Show(tree object.Tree) (object.Tree, error)
	// Write returns a copy of the object with the changes of a view.
	Write(tree, view object.Tree) (object.Tree, error)
}

// errMoved says that the object changed while a write was prepared.
var errMoved = errors.New("testserver: the object has changed")

// definition returns the definition that this attempt uses. Another one may replace it meanwhile.
func (s *Submission) definition() *registry.Definition { return s.def }

func (s *Submission) operation() registry.Operation {
	return registry.Operation{
		Target: registry.Target{Served: s.Served, Subresource: s.Subresource, Values: s.Values},
		DryRun: s.DryRun, User: s.User, Direct: s.Direct,
	}
}

func (s *Submission) manager() registry.Manager {
	return registry.Manager{Name: s.Manager, Served: s.Served, Subresource: s.Subresource}
}

// Submit creates or updates an object. The caller does not hold the lock.
func (wr *Writer) Submit(ctx context.Context, s *Submission) (r *store.Record, created bool, err error) {
	if s.View != nil {
		s.Values = nil // Change returns a view, and the steps after it handle the object
	}
	for {
		s.Warnings, s.def = nil, s.Collection.Definition()
		r, created, err = wr.attempt(ctx, s)
		if !errors.Is(err, errMoved) && !errors.Is(err, store.ErrClaimed) {
			return r, created, err
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
	}
}

func (wr *Writer) attempt(ctx context.Context, s *Submission) (*store.Record, bool, error) {
	if s.Verb == "create" && s.Subresource == "" {
		tree, err := s.Change(nil)
		if err != nil {
			return nil, false, err
		}
		r, err := wr.submitNew(ctx, s, tree)
		return r, true, err
	}
	old := wr.find(s)
	if old == nil {
		return wr.submitMissing(ctx, s)
	}
	r, err := wr.submitChange(ctx, s, old)
	return r, false, err
}

// find returns the object of a submission, or nil.
func (wr *Writer) find(s *Submission) *store.Record {
	wr.store.Lock()
	defer wr.store.Unlock()
	return s.Collection.Get(s.Key)
}

// submitMissing answers an update of an object that does not exist: some resources create it.
func (wr *Writer) submitMissing(ctx context.Context, s *Submission) (*store.Record, bool, error) {
	if s.Subresource != "" || !s.definition().CreateOnUpdate && !s.Upsert {
		return nil, false, apierrors.NewNotFound(s.definition().GroupResource(), s.Key.Name)
	}
	tree, err := s.Change(nil)
	if err != nil {
		return nil, false, err
	}
	if err := checkIdentity(s.definition(), tree, s.Key); err != nil {
		return nil, false, err
	}
	if err := checkUID(s.definition(), s.Key, tree, ""); err != nil && !s.Upsert {
		return nil, false, err
	}
	delete(object.Metadata(tree), "resourceVersion")
	delete(object.Metadata(tree), "uid")
	r, err := wr.submitNew(ctx, s, tree)
	return r, err == nil, err
}

// submitNew creates an object.
func (wr *Writer) submitNew(ctx context.Context, s *Submission, tree object.Tree) (*store.Record, error) {
	d := s.definition()
	if err := checkIdentity(d, tree, api.Key{Namespace: s.Key.Namespace}); err != nil {
		return nil, err
	}
	meta := object.Metadata(tree)
	if err := wr.locked(func() error {
		name := object.StringAt(meta, "name")
		return cmp.Or(wr.checkNamespace(d, s.Key.Namespace, name), wr.checkDefinition(d, cmp.Or(s.Key.Name, name)))
	}); err != nil {
		return nil, err
	}
	wipe(meta)
	tree, err := wr.managed(s, nil, tree)
	if err != nil {
		return nil, err
	}
	a := s.attributes(operationCreate, nil, tree)
	if tree, err = s.mutate(ctx, a); err != nil {
		return nil, err
	}
	wr.identify(s, object.Metadata(tree))
	stored, warnings, err := d.Schema.Create(s.operation(), tree)
	if err != nil {
		return nil, err
	}
	s.Warnings = append(s.Warnings, warnings...)
	if err := s.validate(ctx, a, stored); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // kube-apiserver cannot store the object then, because its own request ends too
		return nil, context.Cause(ctx)
	}
	wr.store.Lock()
	defer wr.store.Unlock()
	return wr.insert(s, stored)
}

// identify sets what the server alone decides in a new object.
func (wr *Writer) identify(s *Submission, meta object.Tree) {
	wr.store.Lock()
	defer wr.store.Unlock()
	wr.generateName(s.Collection, meta)
	meta["uid"] = wr.store.NewUID()
	meta["creationTimestamp"] = now()
	wipe(meta)
}

// insert stores a new object. The caller holds the lock.
func (wr *Writer) insert(s *Submission, tree object.Tree) (*store.Record, error) {
	c, d := s.Collection, s.definition()
	meta := object.Metadata(tree)
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	if err := cmp.Or(wr.checkNamespace(d, key.Namespace, key.Name), wr.checkDefinition(d, key.Name)); err != nil {
		return nil, err
	}
	if d.FromCRD && wr.store.Collection(d.GroupResource()) != c { // the definition ended during admission
		return nil, apierrors.NewNotFound(d.GroupResource(), key.Name)
	}
	if err := checkUnversioned(meta, s.Write); err != nil {
		return nil, err
	}
	if old := c.Get(key); old != nil {
		return nil, alreadyExists(d, old)
	}
	if err := wr.establish(d, tree); err != nil {
		return nil, err
	}
	if s.DryRun {
		return store.NewRecord(d, tree, 0)
	}
	r, err := store.NewRecord(d, tree, wr.store.Version()+1)
	if err != nil {
		return nil, err
	}
	if err := wr.room(nil, r); err != nil {
		return nil, err
	}
	return wr.stored(c)(wr.store.Replace(c, nil, r, tree))
}

// submitChange updates an object that exists.
func (wr *Writer) submitChange(ctx context.Context, s *Submission, old *store.Record) (*store.Record, error) {
	d := s.definition()
	before, err := d.Schema.Convert(s.Served, old.Tree())
	if err != nil {
		return nil, err
	}
	shown := before
	if s.View != nil {
		if shown, err = s.View.Show(before); err != nil {
			return nil, err
		}
	}
	after, err := s.Change(shown)
	if err != nil {
		return nil, err
	}
	if err := checkIdentity(d, after, s.Key); err != nil {
		return nil, err
	}
	expected := after
	if s.Verb == "patch" && s.View == nil { // a patch has no precondition on the UID; the rules of the contents forbid to change it
		expected = object.Tree{"metadata": object.Tree{"resourceVersion": object.Metadata(after)["resourceVersion"]}}
	}
	w := s.Write
	w.upsert = w.upsert || s.View != nil // a Scale needs no version
	if err := checkPreconditions(d, old, expected, w); err != nil {
		return nil, err
	}
	object.Metadata(after)["resourceVersion"] = strconv.FormatUint(old.Version, 10)
	if after, err = wr.managed(s, shown, after); err != nil {
		return nil, err
	}
	a := s.attributes(operationUpdate, shown, after)
	if after, err = s.mutate(ctx, a); err != nil {
		return nil, err
	}
	if s.View != nil {
		if after, err = s.written(before, after); err != nil {
			return nil, err
		}
	}
	stored, warnings, err := d.Schema.Update(s.operation(), old.Tree(), after)
	s.Warnings = append(s.Warnings, warnings...)
	if err != nil {
		return nil, err
	}
	if err := s.validate(ctx, a, stored); err != nil {
		return nil, err
	}
	wr.store.Lock()
	defer wr.store.Unlock()
	return wr.exchange(s, old, stored)
}

// written validates a view and writes it into the object.
func (s *Submission) written(before, view object.Tree) (object.Tree, error) {
	if _, _, err := s.definition().Schema.Create(s.operation(), view); err != nil {
		return nil, err
	}
	return s.View.Write(before, view)
}

// exchange stores tree instead of old. The caller holds the lock.
func (wr *Writer) exchange(s *Submission, old *store.Record, tree object.Tree) (*store.Record, error) {
	c, d := s.Collection, s.definition()
	if c.Get(old.Key) != old {
		return nil, errMoved
	}
	if err := wr.establish(d, tree); err != nil {
		return nil, err
	}
	next, err := store.NewRecord(d, tree, old.Version)
	if err != nil {
		return nil, err
	}
	if next.EqualContents(old) { // a write that changes only the times of managedFields changes nothing
		return old, nil
	}
	last := old.Deleting && !next.HasFinalizers && !waitsForKubelet(object.Metadata(tree)) && !wr.held(d, old.Key.Name, tree)
	if last && !s.DryRun {
		wr.finish(c, old) // the event has the stored object, and the answer has the one that was never stored
	}
	if last || s.DryRun {
		return next, nil
	}
	if err := wr.room(old, next); err != nil {
		return nil, err
	}
	return wr.stored(c)(wr.store.Replace(c, old, next, tree))
}

// SubmitDelete deletes an object. The caller does not hold the lock.
func (wr *Writer) SubmitDelete(ctx context.Context, s *Submission, o metav1.DeleteOptions) (Deletion, error) {
	if s.Admission == nil {
		return wr.Delete(s.Collection, s.Key, o, s.Write)
	}
	s.def = s.Collection.Definition()
	old := wr.find(s)
	if old == nil {
		return Deletion{}, apierrors.NewNotFound(s.definition().GroupResource(), s.Key.Name)
	}
	if err := checkDeletePreconditions(s.definition(), old, o.Preconditions); err != nil {
		return Deletion{}, err
	}
	before, err := s.definition().Schema.Convert(s.Served, old.Tree())
	if err != nil {
		return Deletion{}, err
	}
	a := s.attributes(operationDelete, before, nil)
	if _, err := s.mutate(ctx, a); err != nil {
		return Deletion{}, err
	}
	if err := s.validate(ctx, a, nil); err != nil {
		return Deletion{}, err
	}
	return wr.Delete(s.Collection, s.Key, o, s.Write)
}

// SubmitDeleteAll deletes objects. It skips those that do not exist any more.
func (wr *Writer) SubmitDeleteAll(ctx context.Context, s *Submission, items []*store.Record, o metav1.DeleteOptions) error {
	for _, r := range items {
		one := *s
		one.Key, one.Warnings = r.Key, nil
		_, err := wr.SubmitDelete(ctx, &one, o)
		s.Warnings = append(s.Warnings, one.Warnings...)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// locked runs do under the lock.
func (wr *Writer) locked(do func() error) error {
	wr.store.Lock()
	defer wr.store.Unlock()
	return do()
}

// managed records the writer in managedFields.
func (wr *Writer) managed(s *Submission, before, after object.Tree) (object.Tree, error) {
	d := s.definition()
	managers := d.Managers
	if s.View != nil {
		managers = d.Scaling
	} else if kind, _ := d.SubresourceKind(s.Served, s.Subresource); kind != "" {
		managers = d.ActionManagers[s.Subresource]
	}
	if s.Applied {
		return after, nil
	}
	if !wr.options.ManagedFields || managers == nil {
		keepManagers(object.Metadata(after), object.MapAt(before, "metadata"))
		return after, nil
	}
	return managers.Updated(s.manager(), before, after)
}

// keepManagers keeps metadata.managedFields if a client omits them, or sends wrong ones. A client deletes them by
// sending one empty entry.
func keepManagers(meta, oldMeta object.Tree) {
	sent := object.SliceAt(meta, "managedFields")
	if len(sent) == 1 {
		if first, ok := sent[0].(object.Tree); ok && len(first) == 0 {
			delete(meta, "managedFields")
			return
		}
	}
	if len(sent) == 0 || !fieldmanager.Valid(meta) {
		object.SetOrDrop(meta, "managedFields", oldMeta["managedFields"])
	}
}

const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

// optionsKinds are the kinds of the options that admission sees. Those of a patch are UpdateOptions.
var optionsKinds = map[string]string{
	operationCreate: "CreateOptions", operationUpdate: "UpdateOptions", operationDelete: "DeleteOptions",
}

func (s *Submission) attributes(operation string, old, tree object.Tree) *extension.Attributes {
	d := s.definition()
	options := maps.Clone(s.Options)
	if options != nil {
		options["kind"], options["apiVersion"] = optionsKinds[operation], metav1.SchemeGroupVersion.String()
	}
	key := s.Key
	if s.Verb == "deletecollection" {
		key.Name = "" // admission sees the name in the request, which has none
	}
	return &extension.Attributes{
		Resource: d, Group: d.Group, Served: s.Served, Plural: d.Plural, Subresource: s.Subresource, Verb: s.Verb,
		Operation: operation, Key: key, User: s.User, DryRun: s.DryRun, Object: tree, Old: old, Options: options, Values: s.Values,
	}
}

// mutate runs mutating admission and returns the object after it. What admission changed gets defaults and is checked
// like the body of a request.
func (s *Submission) mutate(ctx context.Context, a *extension.Attributes) (object.Tree, error) {
	if s.Admission == nil {
		return a.Object, nil
	}
	err := s.Admission.Mutate(ctx, a)
	s.Warnings = append(s.Warnings, a.Warnings...)
	a.Warnings = nil
	if err != nil {
		return nil, err
	}
	if !a.Changed || a.Object == nil || s.Values != nil && s.Values.Sent != nil {
		return a.Object, nil
	}
	to := registry.Target{Served: s.Served, Subresource: s.Subresource, Patched: true, Values: s.Values}
	tree, _, err := DecodeTree(s.definition(), to, a.Object)
	if wrong := new(registry.UndecodableError); errors.As(err, &wrong) {
		return nil, apierrors.NewInternalError(wrong.Err) // the fault of a webhook
	}
	return tree, err
}

// validate runs validating admission for an object in storage form; nil is a deletion.
func (s *Submission) validate(ctx context.Context, a *extension.Attributes, stored object.Tree) error {
	if s.Admission == nil {
		return nil
	}
	if stored != nil {
		tree, err := s.definition().Schema.Convert(s.Served, stored)
		if err == nil && s.View != nil {
			tree, err = s.View.Show(tree)
		}
		if err != nil {
			return err
		}
		a.Object = tree
		if a.Key.Name == "" { // it has the name in the path, if there is one
			a.Key.Name = object.StringAt(object.Metadata(tree), "name")
		}
	}
	err := s.Admission.Validate(ctx, a)
	s.Warnings = append(s.Warnings, a.Warnings...)
	return err
}
