package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
)

// TestWebSocket is TestPipeline with watches over WebSocket.
func TestWebSocket(t *testing.T) {
	client := newClient(t, adminConfig())
	widgets := customResource(t, "Gizmo")

	t.Run("of", func(t *testing.T) {
		t.Run("typed pods", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exercise(t, c, websocket.Watch(apiclient.NewTyped[*corev1.Pod](client, pods, c.namespace)))
		})
		t.Run("custom resources", func(t *testing.T) {
			c := newCollection(t, widgets, widgetBody)
			exercise(t, c, websocket.Watch(apiclient.NewPartial[*sighting](client, widgets, c.namespace)))
		})
	})
}
