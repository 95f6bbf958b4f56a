package leatcache

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/leatproject/leat/codec"
)

// setMasks makes the masks of Options.Fields.
func (c *Cache) setMasks(fields map[client.Object][]string) error {
	c.masks = map[collectionKey]*codec.Mask{}
	for object, paths := range fields {
		gvk, err := apiutil.GVKForObject(object, c.o.Scheme)
		if err != nil {
			return fmt.Errorf("leatcache: Fields[%T]: %w", object, err)
		}
		key := collectionKey{gvk: gvk, object: reflect.TypeOf(object)}
		if c.masks[key] != nil {
			return fmt.Errorf("leatcache: Fields has two entries for %s as %T", gvk.Kind, object)
		}
		if c.masks[key], err = codec.NewMaskOf(key.object, paths...); err != nil {
			return fmt.Errorf("leatcache: Fields[%T]: %w", object, err)
		}
	}
	return nil
}

// Masks returns the masks of Options.Fields by the kind and the Go type of their objects, for metrics.
func (c *Cache) Masks() map[string]*codec.Mask {
	masks := make(map[string]*codec.Mask, len(c.masks))
	for key, mask := range c.masks {
		masks[fmt.Sprintf("%s as %s", key.gvk.GroupKind(), key.object)] = mask
	}
	return masks
}

// checkLabels returns an error if a selector needs a label that the masked objects of a collection lack.
func (of *collection) checkLabels(selector labels.Selector) error {
	mask := of.cache.masks[of.key]
	if mask == nil || selector == nil {
		return nil
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if !mask.KeepsLabel(r.Key()) {
			return fmt.Errorf("leatcache: the selector %q needs the label %s of %s, which Options.Fields does not keep", selector, r.Key(), of.key.gvk.Kind)
		}
	}
	return nil
}

// NewClient returns a client that refuses, with a *codec.MaskedError, writes of masked objects, and a merge patch or
// strategic merge patch whose base is a masked object. Such a patch replaces lists whole, and the base lacks fields of
// their elements. Use it as NewClient of a manager whose cache has Options.Fields. It does not refuse a patch that the
// program wrote itself (client.RawPatch), because that names what it changes.
func NewClient(config *rest.Config, o client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(config, o)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if err := codec.RefuseMasked(object); err != nil {
				return err
			}
			return c.Create(ctx, object, o...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			if err := codec.RefuseMasked(object); err != nil {
				return err
			}
			return c.Update(ctx, object, o...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption) error {
			if err := codec.RefuseMasked(object); err != nil {
				return err
			}
			return c.SubResource(name).Update(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			if err := refusePatch(object, patch); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			if err := refusePatch(object, patch); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, object, patch, o...)
		},
	}), nil
}

// refusePatch returns the error of a patch that compares a masked object with another one. A copy without the mark
// shows it: the patch to it removes the mark.
func refusePatch(object client.Object, patch client.Patch) error {
	refused := codec.RefuseMasked(object)
	if refused == nil || patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType {
		return nil
	}
	unmarked := object.DeepCopyObject().(client.Object)
	unmarked.SetManagedFields(nil)
	data, err := patch.Data(unmarked)
	if err != nil {
		return err
	}
	var changes struct{ Metadata map[string]json.RawMessage }
	if err := json.Unmarshal(data, &changes); err != nil {
		return fmt.Errorf("leatcache: read a patch: %w", err)
	}
	if _, compared := changes.Metadata["managedFields"]; compared {
		return refused
	}
	return nil
}
