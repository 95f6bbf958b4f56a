package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestCheckFindsADroppedEvent lets the server drop one event without an error. Nothing shows it, and later events of
// other objects arrive. The next check finds it, and a list mends it.
func TestCheckFindsADroppedEvent(t *testing.T) {
	key := api.Key{Namespace: "default", Name: "w1"}
	for _, tc := range []struct {
		kind   watch.EventType
		change func(s *testserver.Server) error
		name   string // of the object
		logged string
		got    api.ChangeType
	}{
		{watch.Added, func(s *testserver.Server) error { return created(s, named("w7", 7)) }, "w7", "added", api.Added},
		{watch.Modified, func(s *testserver.Server) error {
			return must.Err(s.Update(widgets, named("w1", 9)))
		}, "w1", "changed", api.Updated},
		{watch.Deleted, func(s *testserver.Server) error { return s.Delete(widgets, key) }, "w1", "deleted", api.Deleted},
	} {
		for name, hold := range map[string]informer.Holding[*widget]{
			"whole": nil, "packed": packed.Bytes[*widget](), "coded": packed.Coded[*widget](notTrained),
		} {
			fixture.Bubble(t, tc.logged+" "+name, func(t *testing.T) {
				server, lw := serve(t, testserver.Options{})
				core, logs := observer.New(zapcore.WarnLevel)
				var ended []error
				o := informer.Options[*widget]{
					Check: driftcheck.Every(time.Hour), Hold: hold, Logger: zap.New(core), Hooks: reflector.Hooks{OnError: func(err error) { ended = append(ended, err) }},
				}
				i := informer.New(lw, o)
				var changes []api.Change[*widget]
				subscribe(t, i, func(c api.Change[*widget]) {
					if !c.InitialList {
						changes = append(changes, c)
					}
				}, informer.HandlerOptions{})
				running(t, i)
				synctest.Wait()
				server.Inject(faults.Fault{Match: faults.Match{Frames: []watch.EventType{tc.kind}}, Times: 1, Effect: faults.Drop{}})
				require.NoError(t, tc.change(server))
				require.NoError(t, created(server, named("w8", 8)))
				<-time.After(40 * time.Minute)
				synctest.Wait()
				require.Len(t, changes, 1, "only w8")
				require.Zero(t, i.Status().Check)

				<-time.After(time.Hour)
				synctest.Wait()
				require.Len(t, changes, 2)
				require.Equal(t, tc.got, changes[1].Type)
				require.Equal(t, tc.name, changes[1].Object.Name)
				status := i.Status()
				require.Equal(t, 1, status.Check.Missed)
				require.NoError(t, status.Check.Err)
				require.Contains(t, status.String(), "1 missed and found by checks")
				require.Len(t, ended, 1)
				require.ErrorIs(t, ended[0], reflector.ErrMissed)
				require.Equal(t, 1, logs.Len())
				fields := logs.All()[0].ContextMap()
				require.Equal(t, "default/"+tc.name, fields["object"])
				require.Equal(t, tc.logged, fields["change"])

				lists := status.Reflector.Counters.Lists
				require.Equal(t, 2, lists)
				<-time.After(10 * time.Hour)
				synctest.Wait()
				after := i.Status()
				require.Equal(t, lists, after.Reflector.Counters.Lists)
				require.Equal(t, 1, after.Check.Missed)
				require.Greater(t, after.Check.Checks, 7)
			})
		}
	}
}

func notTrained([][]byte) (encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error), err error) {
	return nil, nil, errors.New("too few")
}

func created(s *testserver.Server, w *widget) error {
	_, err := s.Create(widgets, w)
	return err
}

// TestCheckFindsNothingInChurn changes objects all the time, also between the pages of the checks, whose answers are
// slow. No event is lost, so no check may find anything.
func TestCheckFindsNothingInChurn(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			o := options(t)
			o.Check, o.PageSize = driftcheck.Every(time.Minute), 2
			i := informer.New(lw, o)
			running(t, i)
			synctest.Wait()
			server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Delay{For: 700 * time.Millisecond}})
			random := rand.New(rand.NewPCG(seed, 1))
			for range 5000 {
				key := api.Key{Namespace: "default", Name: fmt.Sprint("w", random.IntN(12))}
				switch w := named(key.Name, random.IntN(100)); random.IntN(3) {
				case 0:
					_, _ = server.Create(widgets, w)
				case 1:
					_, _ = server.Update(widgets, w)
				default:
					_ = server.Delete(widgets, key)
				}
				<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
			}
			status := i.Status()
			require.Greater(t, status.Check.Checks, 5)
			require.NoError(t, status.Check.Err)
			require.Zero(t, status.Check.Missed)
			require.Equal(t, 1, status.Reflector.Counters.Lists)
		})
	}
}

// TestChecksThatFail: a check that fails changes nothing, and Status has its error until the next one.
func TestChecksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, lw := serve(t, testserver.Options{})
		i := informer.New(lw, informer.Options[*widget]{Check: driftcheck.Every(time.Hour)})
		running(t, i)
		synctest.Wait()
		refusal := server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Fail{Code: 403}})
		<-time.After(80 * time.Minute)
		synctest.Wait()
		status := i.Status()
		require.Equal(t, 1, status.Check.Checks)
		require.ErrorContains(t, status.Check.Err, "driftcheck: list metadata: ")
		require.Contains(t, status.String(), "the last check failed")
		refusal.Remove()
		<-time.After(80 * time.Minute)
		synctest.Wait()
		require.NoError(t, i.Status().Check.Err)
	})
}

// TestCheckStopsAtOnce: Run ends while a check lists.
func TestCheckStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, lw := serve(t, testserver.Options{})
		i := informer.New(lw, informer.Options[*widget]{Check: driftcheck.Every(time.Hour)})
		stop := running(t, i)
		synctest.Wait()
		server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Stall{}})
		<-time.After(76 * time.Minute)
		started := time.Now()
		stop()
		require.Zero(t, time.Since(started))
	})
}

// TestCheckWithoutMetadata: a source that cannot list metadata is reported.
func TestCheckWithoutMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		i := informer.New(newSource(), informer.Options[*widget]{Check: driftcheck.Every(time.Hour), Logger: zap.New(core)})
		running(t, i)
		synctest.Wait()
		require.ErrorContains(t, i.Status().Check.Err, "is no api.MetadataSource")
		require.Equal(t, 1, logs.Len())
	})
}

// foreign is a source whose metadata have other UIDs than its objects.
type foreign struct {
	*apiclient.PartialClient[*widget]
}

func (f foreign) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	return foreignMetadata{f.PartialClient.Metadata()}
}

type foreignMetadata struct {
	api.ListerWatcher[*metav1.PartialObjectMetadata]
}

func (f foreignMetadata) List(
	ctx context.Context, o api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error,
) (metav1.ListMeta, error) {
	return f.ListerWatcher.List(ctx, o, func(m *metav1.PartialObjectMetadata) error {
		m.UID += "-other"
		return each(m)
	})
}

// TestCheckDoesNotRepeatItself has a source whose metadata always differ from its objects. No list mends that, so only
// the first check leads to one.
func TestCheckDoesNotRepeatItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, lw := serve(t, testserver.Options{})
		i := informer.New[*widget](foreign{lw}, informer.Options[*widget]{Check: driftcheck.Every(time.Hour)})
		running(t, i)
		<-time.After(20 * time.Hour)
		synctest.Wait()
		status := i.Status()
		require.Equal(t, 3, status.Check.Missed)
		require.Equal(t, 2, status.Reflector.Counters.Lists)
	})
}
