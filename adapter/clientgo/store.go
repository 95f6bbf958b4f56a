package clientgo

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/api"
	leatcache "github.com/leatproject/leat/cache"
)

// store is the cache of an informer as an Indexer of client-go. Programs read it. Tests also write to it; a write calls
// no handler.
type store[T Object] struct{ s *sharedInformer[T] }

var _ interface {
	cache.Indexer
	cache.TransactionStore
} = store[Object]{}

func (x store[T]) snapshot() *leatcache.Snapshot[T] { return x.s.informer().Snapshot() }

// List returns all objects.
func (x store[T]) List() []any {
	s := x.snapshot()
	list := make([]any, 0, s.Len())
	for _, object := range s.All() {
		list = append(list, object)
	}
	return list
}

// ListKeys returns the keys of all objects.
func (x store[T]) ListKeys() []string {
	s := x.snapshot()
	keys := make([]string, 0, s.Len())
	for key := range s.Keys() {
		keys = append(keys, api.FormatKey(key))
	}
	return keys
}

// Get returns the object with the key of obj.
func (x store[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, cache.KeyError{Obj: obj, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey returns the object with a key.
func (x store[T]) GetByKey(key string) (item any, exists bool, err error) {
	parsed, err := api.ParseKey(key)
	if err != nil {
		return nil, false, nil // no object has such a key
	}
	if object, found := x.snapshot().Get(parsed); found {
		return object, true, nil
	}
	return nil, false, nil
}

// LastStoreSyncResourceVersion returns the exact version of the cache.
func (x store[T]) LastStoreSyncResourceVersion() string { return x.snapshot().ResourceVersion() }

// index returns the named index.
func (x store[T]) index(name string) (*leatcache.Index[T, string], error) {
	if index := x.s.current.Load().indexes[name]; index != nil {
		return index, nil
	}
	return nil, fmt.Errorf("clientgo: Index with name %s does not exist", name)
}

// Index returns the objects that share a value of the named index with obj.
func (x store[T]) Index(name string, obj any) ([]any, error) {
	index, err := x.index(name)
	if err != nil {
		return nil, err
	}
	values, err := x.s.current.Load().indexers[name](obj)
	if err != nil {
		return nil, err
	}
	s := x.snapshot()
	if len(values) == 1 {
		return found(index, s, values[0]), nil
	}
	seen, list := map[api.Key]bool{}, []any{}
	for _, value := range values {
		for key, object := range index.In(s, value) {
			if !seen[key] {
				seen[key], list = true, append(list, object)
			}
		}
	}
	return list, nil
}

// ByIndex returns the objects that have a value of the named index.
func (x store[T]) ByIndex(name, value string) ([]any, error) {
	index, err := x.index(name)
	if err != nil {
		return nil, err
	}
	return found(index, x.snapshot(), value), nil
}

// found returns the objects of a snapshot that have a value.
func found[T Object](index *leatcache.Index[T, string], s *leatcache.Snapshot[T], value string) []any {
	list := make([]any, 0, index.Len(value))
	for _, object := range index.In(s, value) {
		list = append(list, object)
	}
	return list
}

// IndexKeys returns the keys of the objects that have a value of the named index, sorted.
func (x store[T]) IndexKeys(name, value string) ([]string, error) {
	index, err := x.index(name)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for _, key := range index.Keys(value) {
		keys = append(keys, api.FormatKey(key))
	}
	return keys, nil
}

// ListIndexFuncValues returns the values of the named index, in no order.
func (x store[T]) ListIndexFuncValues(name string) []string {
	index, err := x.index(name)
	if err != nil {
		return []string{}
	}
	values := []string{}
	for value := range index.Values() {
		values = append(values, value)
	}
	return values
}

// GetIndexers returns the indexers. The caller must not change the map.
func (x store[T]) GetIndexers() cache.Indexers { return x.s.current.Load().indexers }

// AddIndexers adds indexers to the informer.
func (x store[T]) AddIndexers(indexers cache.Indexers) error { return x.s.AddIndexers(indexers) }

var errPacked = errors.New("clientgo: the store of an informer with Options.Hold is only for reading")

// write changes the store in one step. change returns the version after it.
func (x store[T]) write(change func(txn *leatcache.Txn[T], version string) (after string, err error)) error {
	indexer := x.s.informer().Indexer()
	if indexer == nil {
		return errPacked
	}
	txn := indexer.Begin()
	defer txn.Abort()
	version, err := change(txn, indexer.ResourceVersion())
	if err != nil {
		return err
	}
	txn.Commit(version)
	return nil
}

// set stores an object.
func set[T Object](txn *leatcache.Txn[T], obj any) error {
	object, ok := obj.(T)
	if !ok {
		var want T
		return cache.KeyError{Obj: obj, Err: fmt.Errorf("clientgo: the store holds %T", want)}
	}
	txn.Set(object)
	return nil
}

// remove deletes an object, which may be a tombstone.
func remove[T Object](txn *leatcache.Txn[T], obj any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return cache.KeyError{Obj: obj, Err: err}
	}
	if parsed, err := api.ParseKey(key); err == nil {
		txn.Delete(parsed)
	}
	return nil
}

// Add stores an object without calling the handlers. It is meant for tests.
func (x store[T]) Add(obj any) error {
	return x.write(func(txn *leatcache.Txn[T], version string) (string, error) { return version, set(txn, obj) })
}

// Update is Add.
func (x store[T]) Update(obj any) error { return x.Add(obj) }

// Delete deletes an object without calling the handlers. It is meant for tests.
func (x store[T]) Delete(obj any) error {
	return x.write(func(txn *leatcache.Txn[T], version string) (string, error) { return version, remove(txn, obj) })
}

// Replace replaces the content of the store without calling the handlers. It is meant for tests.
func (x store[T]) Replace(list []any, version string) error {
	return x.write(func(txn *leatcache.Txn[T], _ string) (string, error) {
		for key := range x.snapshot().Keys() {
			txn.Delete(key)
		}
		for _, obj := range list {
			if err := set(txn, obj); err != nil {
				return "", err
			}
		}
		return version, nil
	})
}

// Transaction makes several changes in one step. It is meant for tests.
func (x store[T]) Transaction(changes ...cache.Transaction) *cache.TransactionError {
	failed := &cache.TransactionError{TotalTransactions: len(changes)}
	err := x.write(func(txn *leatcache.Txn[T], version string) (string, error) {
		for i, c := range changes {
			apply := set[T]
			if c.Type == cache.TransactionTypeDelete {
				apply = remove[T]
			}
			if err := apply(txn, c.Object); err != nil {
				failed.Errors = append(failed.Errors, err)
			} else {
				failed.SuccessfulIndices = append(failed.SuccessfulIndices, i)
			}
		}
		return version, nil
	})
	if err != nil {
		failed.Errors = append(failed.Errors, err)
	}
	if len(failed.Errors) == 0 {
		return nil
	}
	return failed
}

// Bookmark sets the version of the store. It is meant for tests.
func (x store[T]) Bookmark(version string) {
	_ = x.write(func(*leatcache.Txn[T], string) (string, error) { return version, nil })
}

// Resync does nothing, as in client-go.
func (x store[T]) Resync() error { return nil }
