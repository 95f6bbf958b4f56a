package builtin_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// FuzzWrite decodes bodies as every kind and creates what can be decoded. It requires that the answer is an object or a
// Status, and that equal requests have equal answers.
func FuzzWrite(f *testing.F) {
	all := builtin.Resources()
	for _, m := range readMinimal(f) {
		body := must.Get(json.Marshal(m.Sent))(f)
		for i, d := range all {
			if at, _ := served(f, m.Path); at.GroupResource() == d.GroupResource() {
				f.Add(uint(i), uint(0), body)
				f.Add(uint(i), uint(1), body)
				f.Add(uint(i), uint(2), body)
			}
		}
	}
	f.Add(uint(0), uint(2), []byte("k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod"))
	f.Fuzz(func(t *testing.T, resource, mediaType uint, body []byte) {
		d := all[resource%uint(len(all))]
		if d.Schema == nil {
			return
		}
		types := d.Schema.MediaTypes()
		write := func() string {
			tree, err := written(d, types[mediaType%uint(len(types))], body)
			var status apierrors.APIStatus
			require.True(t, err == nil || errors.As(err, &status), "%v", err)
			if err != nil {
				return err.Error()
			}
			encoded := must.Get(json.Marshal(tree))(t)
			return string(encoded)
		}
		if d.Plural == "services" { // the second one may not have the addresses of the first
			write()
			return
		}
		synctest.Test(t, func(t *testing.T) { require.Equal(t, write(), write()) }) // some objects contain the time
	})
}

// written creates an object, updates it with itself, and encodes it.
func written(d *registry.Definition, mediaType string, body []byte) (object.Tree, error) {
	target := registry.Target{Served: d.Version}
	tree, _, err := d.Schema.Decode(target, mediaType, body)
	if err != nil {
		return nil, err
	}
	meta := object.Metadata(tree)
	meta["uid"], meta["creationTimestamp"] = "6e2c8e8e-0000-0000-0000-000000000001", "2026-01-01T00:00:00Z"
	if d.Namespaced {
		meta["namespace"] = "default"
	}
	op := registry.Operation{Target: target}
	stored, _, err := d.Schema.Create(op, tree)
	if err != nil || d.Virtual() {
		return stored, err
	}
	object.Metadata(stored)["resourceVersion"] = "7"
	sent, err := d.Schema.Convert(d.Version, stored)
	if err != nil {
		return nil, err
	}
	if _, err := d.Schema.Encode("application/vnd.kubernetes.protobuf", sent); err != nil {
		return nil, err
	}
	if _, err := d.Columns.Rows(d.Version, sent); err != nil {
		return nil, err
	}
	after, _, err := d.Schema.Update(op, stored, sent)
	return after, err
}
