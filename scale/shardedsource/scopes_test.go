package shardedsource_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
)

// TestScopesOfOneResource has a set whose scopes are ranges of one resource. A range is split while the set runs: the
// parts overlap the range until they have listed, so that no object is missing at any time. Then half of it is handed
// over without notifications, and taken back. Checks compare each range with the server.
func TestScopesOfOneResource(t *testing.T) {
	for _, sharded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, testserver.Options{ShardedLists: sharded})
			defer w.end()
			random := rand.New(rand.NewPCG(1, 1))
			w.churn(random, configMaps, 120)
			set := scopes.New(configMaps, scopes.Options[*object]{Options: informer.Options[*object]{Check: driftcheck.Every(time.Minute)}})
			client := apiclient.NewPartial[*object](w.client(nil), configMaps, "")
			add := func(hashes hashrange.Set) (name string) {
				name = hashes.String()
				require.NoError(t, set.Add(scopes.Scope[*object]{Name: name, Source: shardedsource.New(client, hashrange.UID, hashes, shardedsource.Options{})}))
				return name
			}
			f := &follower[*object]{Informer: set.Informer, objects: map[api.Key]*object{}}
			require.NoError(t, f.subscribe())
			half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
			quarter := hashrange.NewSet(hashrange.Range{To: 1 << 62})
			first := add(half)
			w.run(set.Run)
			<-set.Synced()
			synctest.Wait()
			check(w, f, configMaps, hashrange.UID, half)

			before := f.notified()
			kept, lost := add(quarter), add(half.Minus(quarter))
			<-set.ScopeSynced(kept)
			<-set.ScopeSynced(lost)
			<-set.Remove(first, scopes.Silent)
			synctest.Wait()
			require.Equal(t, before, f.notified(), "handlers get nothing")
			check(w, f, configMaps, hashrange.UID, half)

			w.churn(random, configMaps, 60)
			<-time.After(3 * time.Second) // deletions wait a second for the other scope
			synctest.Wait()
			check(w, f, configMaps, hashrange.UID, half)

			before = f.notified()
			<-set.Remove(lost, scopes.Silent)
			synctest.Wait()
			require.Equal(t, before, f.notified())
			f.forget(half.Minus(quarter))
			check(w, f, configMaps, hashrange.UID, quarter)

			w.churn(random, configMaps, 60)
			<-set.ScopeSynced(add(half.Minus(quarter)))
			<-time.After(3 * time.Second)
			synctest.Wait()
			require.Greater(t, f.notified(), before)
			check(w, f, configMaps, hashrange.UID, half)
			require.Len(t, set.Names(), 2)

			<-time.After(10 * time.Minute)
			synctest.Wait()
			checks := set.Status().Check
			require.Greater(t, checks.Checks, 10)
			require.Zero(t, checks.Missed)
			require.NoError(t, checks.Err)
		})
	}
}
