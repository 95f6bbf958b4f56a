package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Collection says which objects a ListerWatcher has. It never changes. What a ListerWatcher can also do is in the
// interfaces below; only other packages of leat call them.
type Collection struct {
	// Resource is the resource of the objects. It is zero if it is not known; objects may then have a namespace or not.
	Resource Resource
	// Namespace is the only namespace of the objects. It is empty for all namespaces. A reflector refuses objects of
	// other namespaces.
	Namespace string
	// Shard is the shardSelector of the objects (KEP-5866). It is empty for a whole collection. Package warmstart
	// writes it to its file.
	Shard string
}

// Wrapper is a ListerWatcher around another one. A type that embeds it overrides only the methods that it changes, and
// As finds the capabilities of the other one through it:
//
//	type counting[T any] struct {
//		api.Wrapper[T]
//		lists atomic.Int64
//	}
//
// A type that changes the objects must also override the capabilities that no longer hold. A type that embeds the
// interface ListerWatcher, and no Wrapper, has only its own capabilities. Do not embed a client: its Identity and its
// Packed would bypass the methods of the type.
type Wrapper[T any] struct{ ListerWatcher[T] }

// Unwrap returns the other ListerWatcher.
func (w Wrapper[T]) Unwrap() any { return w.ListerWatcher }

// As returns a capability of a ListerWatcher: an interface such as MetadataSource. It follows Unwrap, and the first
// answer counts, so a wrapper overrides a capability with all its methods. It looks at every wrapper, so look a
// capability up once, and not for each object.
func As[C any](lw any) (c C, found bool) {
	for lw != nil {
		if c, found = lw.(C); found {
			return c, true
		}
		w, wraps := lw.(interface{ Unwrap() any })
		if !wraps {
			break
		}
		lw = w.Unwrap()
	}
	return c, false
}

// Identified is a ListerWatcher that can be equal to another one. It does not hold for a wrapper, which may change the
// objects, so it must be looked up without As.
type Identified interface {
	// Identity returns a comparable value. It is equal for ListerWatchers that read the same objects in the same way,
	// so that one informer can serve both. The type of the objects is not part of it.
	Identity() any
}

// MetadataSource is a ListerWatcher of objects whose metadata can be listed alone.
type MetadataSource interface {
	// Metadata returns a ListerWatcher of the same objects that reads only their metadata, for consistency checks. It
	// may be nil.
	Metadata() ListerWatcher[*metav1.PartialObjectMetadata]
}

// MetadataOf returns what Metadata of a ListerWatcher returns. It is nil if that is not a MetadataSource.
func MetadataOf(lw any) ListerWatcher[*metav1.PartialObjectMetadata] {
	if source, ok := As[MetadataSource](lw); ok {
		return source.Metadata()
	}
	return nil
}
