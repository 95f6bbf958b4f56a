package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestAnswersHaveAnAuditID checks answers of resources, documents and errors.
func TestAnswersHaveAnAuditID(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		seen := map[string]bool{}
		for _, path := range []string{podsPath, "/version", "/nowhere", podsPath + "/none", podsPath} {
			id := b.do(http.MethodGet, path, nil).header.Get("Audit-Id")
			require.Regexp(b, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
			require.False(b, seen[id])
			seen[id] = true
			require.Equal(b, []string{"mine"}, b.do(http.MethodGet, path, nil, "Audit-ID", "mine").header.Values("Audit-Id"))
		}
	})
}

// TestAFaultHasAnAuditID has an answer of a fault, which kube-apiserver would send with the header too.
func TestAFaultHasAnAuditID(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Inject(faults.Fault{Effect: faults.Fail{Code: 503}})
		require.NotEmpty(b, b.do(http.MethodGet, podsPath, nil).header.Get("Audit-Id"))
	})
}
