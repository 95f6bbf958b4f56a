package factory

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
)

type (
	object  = metav1.PartialObjectMetadata
	options = informer.Options[*object]
)

// unlisted is a ListerWatcher without methods: these tests send no request.
type unlisted struct{ api.ListerWatcher[*object] }

func (*unlisted) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Plural: "things"}}
}

func TestShareDropsRemovedHandlers(t *testing.T) {
	share := must.Get(Shared(New(Options{}), &unlisted{}, options{}))(t)
	for range 1000 {
		r := must.Get(share.Subscribe(func(api.Change[*object]) {}, informer.HandlerOptions{}))(t)
		r.Remove()
	}
	require.LessOrEqual(t, len(share.registrations), 1)
	share.Release()
	<-share.Done()
}

// TestReleasedShareHoldsNoHandler keeps a released share, as a user may who has only stopped to use it.
func TestReleasedShareHoldsNoHandler(t *testing.T) {
	share, err := Shared(New(Options{}), &unlisted{}, options{})
	require.NoError(t, err)
	state := &object{}
	state.Name = "a"
	p := weak.Make(state)
	_, err = share.Subscribe(func(api.Change[*object]) { state.Name = "b" }, informer.HandlerOptions{})
	require.NoError(t, err)
	share.Release()
	<-share.Done()
	for range 10 {
		runtime.GC()
	}
	require.Nil(t, p.Value(), "the share must not hold the handler")
	runtime.KeepAlive(share)
}

func TestDifferingOptions(t *testing.T) {
	strip := func(o *object) (*object, error) { return o, nil }
	closure := func(name string) func(*object) (*object, error) {
		return func(o *object) (*object, error) { o.Name = name; return o, nil }
	}
	first := closure("a")
	for _, tc := range []struct {
		name string
		a, b options
		want string
	}{
		{"equal", options{Tuning: reflector.Tuning{PageSize: 5}}, options{Tuning: reflector.Tuning{PageSize: 5}}, ""},
		{"another number", options{Tuning: reflector.Tuning{PageSize: 5}}, options{}, "PageSize"},
		{"another bool", options{Tuning: reflector.Tuning{NoWatchDedup: true}}, options{}, "NoWatchDedup"},
		{"another period", options{Handling: informer.Handling{ResyncPeriod: time.Second}}, options{}, "ResyncPeriod"},
		{"another hook", options{Hooks: reflector.Hooks{OnError: func(error) {}}}, options{}, "OnError"},
		{"another logger", options{Logger: zap.NewNop()}, options{}, ""},
		{"a transform and none", options{Transform: strip}, options{}, "Transform"},
		{"the same transform", options{Transform: strip}, options{Transform: strip}, ""},
		{"the same closure", options{Transform: first}, options{Transform: first}, ""},
		{"two closures of one function", options{Transform: first}, options{Transform: closure("b")}, "Transform"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, firstDifference(tc.a, tc.b))
		})
	}
}
