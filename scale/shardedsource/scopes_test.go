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
	"github.com/leatproject/leat/internal/fixture"
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
		inWorld(t, testserver.Options{ShardedLists: sharded}, func(t *testing.T, w *world) {
			random := rand.New(rand.NewPCG(1, 1))
			w.churn(random, configMaps, 120)
			set := scopes.New(configMaps, scopes.Options[*object]{Options: informer.Options[*object]{Check: driftcheck.Every(time.Minute)}})
			client := apiclient.NewPartial[*object](w.client(nil), configMaps, "")
			add := func(hashes hashrange.Set) (name string) {
				name = hashes.String()
				require.NoError(t, set.Add(scopes.Scope[*object]{Name: name, Source: shardedsource.New(client, hashrange.UID, hashes, shardedsource.Options{})}))
				return name
			}
			f := followed(w, set.Informer)
			half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
			quarter := hashrange.NewSet(hashrange.Range{To: 1 << 62})
			first := add(half)
			w.Start(set.Run)
			<-set.Synced()
			synctest.Wait()
			check(w, f, configMaps, hashrange.UID, half)

			f.got.Take()
			kept, lost := add(quarter), add(half.Minus(quarter))
			<-set.ScopeSynced(kept)
			<-set.ScopeSynced(lost)
			<-set.Remove(first, scopes.Silent)
			synctest.Wait()
			require.Empty(t, f.got.Take(), "handlers get nothing")
			check(w, f, configMaps, hashrange.UID, half)

			w.churn(random, configMaps, 60)
			<-time.After(3 * time.Second) // deletions wait a second for the other scope
			synctest.Wait()
			check(w, f, configMaps, hashrange.UID, half)

			f.got.Take()
			<-set.Remove(lost, scopes.Silent)
			synctest.Wait()
			require.Empty(t, f.got.Take())
			f.got.Forget(func(_ api.Key, o *object) bool { return half.Minus(quarter).Contains(hashrange.Hash(o.UID)) })
			check(w, f, configMaps, hashrange.UID, quarter)

			w.churn(random, configMaps, 60)
			<-set.ScopeSynced(add(half.Minus(quarter)))
			fixture.Pass(3 * time.Second)
			require.NotEmpty(t, f.got.Take())
			check(w, f, configMaps, hashrange.UID, half)
			require.Len(t, set.Names(), 2)

			fixture.Pass(10 * time.Minute)
			checks := set.Status().Check
			require.Greater(t, checks.Checks, 10)
			require.Zero(t, checks.Missed)
			require.NoError(t, checks.Err)
		})
	}
}
