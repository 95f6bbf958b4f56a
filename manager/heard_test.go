package manager_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
)

// TestHeardWithin has two informers that the server stops informing at different times, and one without a first list.
func TestHeardWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		all := []informer.Status{
			{Name: "pods", Synced: true, HeardAt: start},
			{Name: "nodes", Synced: true, HeardAt: start.Add(time.Minute)},
			{Name: "leases"},
		}
		check := manager.HeardWithin(2*time.Minute, func() []informer.Status { return all })
		<-time.After(2 * time.Minute)
		require.NoError(t, check(t.Context()), "exactly two minutes")
		<-time.After(time.Second)
		require.EqualError(t, check(t.Context()), "manager: pods: the server has sent nothing for 2m1s")
		<-time.After(time.Minute)
		require.EqualError(t, check(t.Context()), "manager: pods: the server has sent nothing for 3m1s\n"+
			"manager: nodes: the server has sent nothing for 2m1s")
		all[0].HeardAt, all[1].HeardAt = time.Now(), time.Now()
		require.NoError(t, check(t.Context()))
	})
}

// TestHeardWithinOfAnIdleWatch has an informer of objects that do not change, on a server where others change. The
// bookmarks are enough.
func TestHeardWithinOfAnIdleWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := served(t)
		i := mapInformer(server.Connect(nil))
		server.Start(i.Run)
		<-i.Synced()
		check := manager.HeardWithin(2*time.Minute, func() []informer.Status { return []informer.Status{i.Status()} })
		for range 30 { // a server sends bookmarks only if anything in it has changed
			<-time.After(time.Minute)
			server.Create(leases, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "busy-"}})
			require.NoError(t, check(t.Context()))
		}
	})
}
