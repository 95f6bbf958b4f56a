package metrics_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestRegisterNumbersInformers registers two informers of one collection, one of them twice.
func TestRegisterNumbersInformers(t *testing.T) {
	m, registry := registered(t)
	c := newCluster(t)
	first, second := c.informer(t, informer.Options[*configMap]{}), c.informer(t, informer.Options[*configMap]{})
	var removes []func()
	for _, i := range []any{first, second, first, "a value without metrics"} {
		remove := must.Get(m.Register("unused", i))(t)
		removes = append(removes, remove)
	}
	require.Equal(t, map[string]float64{"configmaps": 0, "configmaps #2": 0}, values(t, registry, "leat_informer_synced"))
	removes[2]()
	require.Len(t, values(t, registry, "leat_informer_synced"), 2, "it was registered by the first call, and that call's result removes it")
	removes[0]()
	require.Equal(t, map[string]float64{"configmaps #2": 0}, values(t, registry, "leat_informer_synced"))
	require.Error(t, must.Err(m.Register("", struct{ elector }{})), "a lease without a name")
}

// TestFactoryKeepsNoEndedInformer shares and releases informers of a factory whose metrics are shown.
func TestFactoryKeepsNoEndedInformer(t *testing.T) {
	m, registry := registered(t)
	c := newCluster(t)
	f := factory.New(factory.Options{})
	fixture.Start(t, f.Run)
	remove := must.Get(m.Register("factory", f))(t)
	client := must.Get(apiclient.New(c.config))(t)
	lw := apiclient.NewPartial[*configMap](client, configMaps, "")
	var gone []weak.Pointer[informer.Informer[*configMap]]
	for range 3 {
		share := must.Get(factory.Shared(f, lw, informer.Options[*configMap]{}))(t)
		require.Len(t, values(t, registry, "leat_informer_synced"), 1)
		gone = append(gone, weak.Make(share.Informer))
		share.Release()
		<-share.Done()
	}
	must.Get(factory.Shared(f, lw, informer.Options[*configMap]{}))(t)
	require.Len(t, values(t, registry, "leat_informer_synced"), 1)
	runtime.GC()
	for _, i := range gone {
		require.Nil(t, i.Value())
	}
	remove()
	require.Empty(t, values(t, registry, "leat_informer_synced"))
	runtime.KeepAlive(m)
}

// TestFactoryIsShownOnce registers a factory twice, and one of its informers before.
func TestFactoryIsShownOnce(t *testing.T) {
	m, registry := registered(t)
	c := newCluster(t)
	f := factory.New(factory.Options{})
	client := must.Get(apiclient.New(c.config))(t)
	share := must.Get(factory.Shared(f, apiclient.NewPartial[*configMap](client, configMaps, ""), informer.Options[*configMap]{}))(t)
	must.Get(m.Informer("own name", share.Informer))(t)
	for range 2 {
		must.Get(m.Register("factory", f))(t)
	}
	require.Equal(t, map[string]float64{"own name": 0}, values(t, registry, "leat_informer_synced"))
}

// lateFactory tells of a new informer while its observer is removed.
type lateFactory struct{ observe func(informer.Any) }

func (f *lateFactory) ObserveInformers(observe func(informer.Any)) (stop func()) {
	f.observe = observe
	return func() {}
}

// TestRemovedFactoryShowsNothing makes an informer of a factory whose metrics are being removed.
func TestRemovedFactoryShowsNothing(t *testing.T) {
	m, registry := registered(t)
	c := newCluster(t)
	f := &lateFactory{}
	remove := must.Get(m.Register("factory", f))(t)
	remove()
	f.observe(c.informer(t, informer.Options[*configMap]{}))
	require.Empty(t, values(t, registry, "leat_informer_synced"))
}
