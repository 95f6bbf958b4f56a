package recording

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestAWatchIsWhatTheServerTakesForOne compares the truth values of parameters with those of kube-apiserver.
func TestAWatchIsWhatTheServerTakesForOne(t *testing.T) {
	for _, value := range []string{
		"", "watch", "watch=", "watch=true", "watch=True", "watch=TRUE", "watch=1", "watch=0", "watch=00", "watch=false", "watch=False",
		"watch=FALSE", "watch=f", "watch=no", "watch=t", "watch=yes", "watch=+false", "watch=true&watch=false", "watch=false&watch=true",
		"watch=&watch=false", "watch=0&watch=1", "Watch=true", "watch=%66alse", "watch=a;b",
	} {
		req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?"+value, nil)
		require.NoError(t, err)
		s, ok := streamOf(req)
		require.True(t, ok)
		values := req.URL.Query()["watch"]
		var want bool
		require.NoError(t, runtime.Convert_Slice_string_To_bool(&values, &want, nil))
		require.Equal(t, want, s.Watch, value)
	}
	req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=1&sendInitialEvents=1&allowWatchBookmarks=False", nil)
	require.NoError(t, err)
	s, _ := streamOf(req)
	require.Equal(t, map[string]string{"sendInitialEvents": "true", "allowWatchBookmarks": "false"}, s.Options)
}
