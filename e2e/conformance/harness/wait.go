package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long Wait waits. Controllers that back off need up to a few seconds, and a busy machine more.
const patience = 45 * time.Second

// Namespace creates a namespace that is named after the test.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	created, err := s.Clientset().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return created.Name
}

// Wait calls done every 50 ms until it returns nil. It fails the test with the last error.
func Wait(t *testing.T, what string, done func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			require.NoError(t, err, "%s: not within %s", what, patience)
		case <-t.Context().Done():
			require.NoError(t, err, what)
		}
	}
}
