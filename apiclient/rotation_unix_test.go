//go:build unix

package apiclient_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAPipeIsReadOnce has a token in a pipe, as a shell's <(...) makes one. To read it again would block for ever.
func TestAPipeIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	go func() { _ = os.WriteFile(path, []byte("one"), 0o600) }()
	cfg := onLoopback(t, answer(401, jsonType, "{}"))
	cfg.BearerTokenFile = path
	r := pods(t, cfg)
	for range 2 {
		_, err := r.Get(t.Context(), web, metav1.GetOptions{})
		require.True(t, apierrors.IsUnauthorized(err))
	}
}
