package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/manager/accessreview"
)

// TestAccessReview reads a handler with the tokens of three users.
func TestAccessReview(t *testing.T) {
	filter, err := accessreview.New(accessreview.Options{Client: newClient(t, adminConfig())})
	require.NoError(t, err)
	handler := filter.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for token, code := range map[string]int{
		cluster.AdminToken: http.StatusOK, cluster.RestrictedToken: http.StatusForbidden, "forged": http.StatusUnauthorized,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, code, w.Code, token)
	}
}
