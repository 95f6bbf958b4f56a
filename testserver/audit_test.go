package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
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
