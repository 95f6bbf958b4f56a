package clientgo

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// Factory is the SharedInformerFactory of client-go, or one that its generators made for other types. F is its
// NewInformerFunc.
type Factory[F any] interface {
	InformerFor(example runtime.Object, newFunc F) cache.SharedIndexInformer
}

// Preload makes a factory use an informer of leat for the type T, so that the generated informers and listers of T read
// its cache. It must be called before the factory makes an informer for T; otherwise it returns an error. The factory
// runs the informer, and its default resync period and its transform apply. A factory with an InformerName is an error,
// because it asks for metrics of client-go, which leat does not have. lw must have the namespace, and o the
// selector, that the factory was given, because a factory does not tell them. T is a type such as *corev1.Pod.
func Preload[T Object, C any, F ~func(C, time.Duration) cache.SharedIndexInformer](
	f Factory[F], lw api.ListerWatcher[T], o Options[T],
) (cache.SharedIndexInformer, error) {
	if named, ok := f.(interface{ InformerName() *cache.InformerName }); ok && named.InformerName() != nil {
		return nil, errors.New("clientgo: the factory has an InformerName, which asks for client-go's metrics; leat does not " +
			"have them: register the informer with leat's package metrics instead")
	}
	var made cache.SharedIndexInformer
	if o.Indexers = maps.Clone(o.Indexers); o.Indexers == nil {
		o.Indexers = cache.Indexers{}
	}
	o.Indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	example := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	got := f.InformerFor(example, func(_ C, resync time.Duration) cache.SharedIndexInformer {
		if o.ResyncPeriod == 0 {
			o.ResyncPeriod = resync
		}
		made = New(lw, o)
		return made
	})
	if made == nil || got != made {
		return nil, fmt.Errorf("clientgo: the factory has an informer for %T already; call Preload earlier", example)
	}
	return got, nil
}

// tuningOf returns what is different for a list/watcher of client-go. Rule: WatchLists (KEP-3157) only with a source
// that says that it supports them. Reason: a source that ignores the option sends no end of the initial objects.
func tuningOf(lw cache.ListerWatcher) reflector.Tuning {
	_, says := lw.(interface{ IsWatchListSemanticsUnSupported() bool })
	return reflector.Tuning{NoWatchList: !says || watchlist.DoesClientNotSupportWatchListSemantics(lw)}
}
