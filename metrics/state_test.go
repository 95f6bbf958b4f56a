package metrics_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// TestStates shows states that are hard to produce.
func TestStates(t *testing.T) {
	m, registry := registered(t)
	part := &told{
		stats: controller.Stats{Gated: 7},
		status: informer.Status{
			Resource:        api.Resource{Group: "apps", Version: "v1", Plural: "mills"},
			ResourceVersion: "9123456789012345678", Reflector: reflector.Status{Err: errors.New("no")},
		},
	}
	c, i := shown(t)(m.Controller(part)), shown(t)(m.Informer("", toldInformer{part}))
	require.Equal(t, map[string]float64{"told": 7}, values(t, registry, "leat_controller_gated_keys"))
	require.Equal(t, map[string]float64{"mills.apps": 1}, values(t, registry, "leat_informer_failing"))
	require.Equal(t, map[string]float64{"apps,mills.apps,mills,v1": 456789012345678}, values(t, registry, "informer_store_resource_version"))

	for n := range 30 { // the series of an informer's scopes are bounded, and those without a missed change have none
		part.status.Scopes = append(part.status.Scopes, informer.ScopeStatus{
			Name: fmt.Sprintf("s%02d", n), Check: informer.CheckStatus{Checks: 1, Missed: n},
		})
	}
	missed := values(t, registry, "leat_informer_scope_missed_changes_total")
	require.Len(t, missed, 26)
	require.Equal(t, 25., missed["mills.apps,s25"])
	require.Equal(t, 26.+27+28+29, missed["mills.apps,others"])

	now := time.Now() // an event after its key became ready did not wait in the queue
	part.ended(timed{times: controller.Times{Ready: now, Received: now.Add(time.Second), Started: now.Add(2 * time.Second), Done: now.Add(3 * time.Second)}})
	require.Equal(t, map[string]float64{"told,queued": 0, "told,started": 1, "told,done": 1}, values(t, registry, "leat_event_latency_seconds"))

	c.Remove()
	require.Equal(t, 1, part.left, "the removed controller has no observer")
	i.Remove()
	require.Equal(t, 2, part.left)
}
