package controller_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// slowInformer is an informer of another package. Its registrations are synced, and done, when the test says so.
type slowInformer struct {
	*informer.Informer[*thing]
	synced, done chan struct{}
}

var _ controller.Informer[*thing] = slowInformer{}

func (i slowInformer) Subscribe(f func(api.Change[*thing]), o informer.HandlerOptions) (informer.Registration, error) {
	r, err := i.Informer.Subscribe(f, o)
	return slowRegistration{r, i}, err
}

type slowRegistration struct {
	informer.Registration
	informer slowInformer
}

var _ informer.Registration = slowRegistration{}

func (r slowRegistration) Synced() <-chan struct{} { return r.informer.synced }
func (r slowRegistration) Done() <-chan struct{}   { return r.informer.done }

// TestRegistrationOfAnotherPackage checks that a source uses the Registration that its informer returns.
func TestRegistrationOfAnotherPackage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		c.apply(named("a"))
		slow := slowInformer{c.running(t), make(chan struct{}), make(chan struct{})}
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		w := ctl.Watch(controller.For(slow))
		start(t, ctl.Run)
		require.Empty(t, r.names(), "the registration is not synced")
		close(slow.synced)
		require.Equal(t, []string{"a"}, r.names())

		w.Remove()
		synctest.Wait()
		select {
		case <-w.Done():
			t.Fatal("the registration is not done")
		default:
		}
		close(slow.done)
		<-w.Done()
	})
}
