package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// TestValue reads values of a record in two stores, before and after one of them replaces the record.
func TestValue(t *testing.T) {
	d, err := registry.Custom(registry.Settings{Resource: api.Resource{Version: "v1", Kind: "Thing", Plural: "things"}})
	require.NoError(t, err)
	s := New(0, 10, 1)
	s.Define(d)
	c := s.Collection(d.GroupResource())
	tree := object.Tree{"metadata": object.Tree{"name": "a"}}
	r := must.Get(s.Put(c, nil, tree))(t)
	made := 0
	value := func(r *Record, err error) (*int, error) {
		return Value(r, "key", func() (*int, error) {
			made++
			return new(made), err
		})
	}
	_, err = value(r, errors.ErrUnsupported)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	first, err := value(r, nil)
	require.NoError(t, err, "an error is not kept")
	f := s.Fork(nil)
	forked := f.Collection(d.GroupResource()).Get(api.Key{Name: "a"})
	again := must.Get(value(forked, nil))(t)
	require.Same(t, first, again)
	require.Equal(t, 2, made)
	must.Get(s.Put(c, r, tree))(t)
	require.Nil(t, r.other.Load().values, "the history keeps no values")
	again = must.Get(value(forked, nil))(t)
	require.Equal(t, 3, *again)
}
