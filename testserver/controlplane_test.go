package testserver_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// insider sends requests of the control plane.
type insider struct {
	*testing.T
	*testserver.Server
}

func (i insider) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	r := must.Get(http.NewRequestWithContext(ctx, method, i.URL()+path, strings.NewReader(body)))(i)
	return i.ControlPlane().RoundTrip(r)
}

func (i insider) do(method, path, body string) (int, string) {
	i.Helper()
	res := must.Get(i.send(i.Context(), method, path, body))(i)
	out := must.Get(io.ReadAll(res.Body))(i)
	require.NoError(i, res.Body.Close())
	return res.StatusCode, string(out)
}

// TestControlPlane sends requests to a server that does not run, that refuses everybody and has every fault.
func TestControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := insider{t, testserver.New(testserver.Options{Tokens: testserver.Tokens{"sesame": "ali"}})}
		i.Inject(faults.Fault{Effect: faults.Outage{}})
		i.Inject(faults.Fault{Effect: faults.Fail{Code: 500}})
		i.Inject(faults.Fault{Effect: faults.Stall{}})
		i.Inject(faults.Fault{Effect: faults.Drop{}})
		res, err := i.send(t.Context(), http.MethodGet, mapsPath+"?watch=true", "")
		require.NoError(t, err)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		frames := bufio.NewReader(res.Body)

		code, body := i.do(http.MethodPost, mapsPath, `{"metadata":{"name":"a"}}`)
		require.Equal(t, http.StatusCreated, code, body)
		frame, err := frames.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, frame, `"type":"ADDED"`)
		i.Inject(faults.Fault{Effect: faults.Disconnect{}})
		code, body = i.do(http.MethodGet, mapsPath, "")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, `"name":"a"`)
		code, _ = i.do(http.MethodGet, "/api", "")
		require.Equal(t, http.StatusOK, code)
		code, _ = i.do(http.MethodDelete, mapsPath+"/none", "")
		require.Equal(t, http.StatusNotFound, code)
		require.Empty(t, i.Requests())
		require.Empty(t, i.Watches())

		require.NoError(t, res.Body.Close())
		_, err = frames.ReadByte()
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

// TestControlPlaneAfterRestore requires that a watch of the control plane ends with a 410 when the state is another
// one.
func TestControlPlaneAfterRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := insider{t, testserver.New(testserver.Options{})}
		before := i.Snapshot()
		for _, replace := range []func(){
			func() { i.Inject(faults.Fault{Effect: faults.Restore{To: before}}) },
			func() { require.NoError(t, i.Load(i.Dump())) },
		} {
			res := must.Get(i.send(t.Context(), http.MethodGet, mapsPath+"?watch=true", ""))(t)
			replace()
			frames := must.Get(io.ReadAll(res.Body))(t)
			require.Contains(t, string(frames), `"type":"ERROR"`)
			require.Contains(t, string(frames), `"code":410`)
			require.NoError(t, res.Body.Close())
		}
	})
}

// TestControlPlaneEndsWithItsContext ends contexts before the answer, and during a watch.
func TestControlPlaneEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := insider{t, testserver.New(testserver.Options{})}
		ctx, cancel := context.WithCancel(t.Context())
		res, err := i.send(ctx, http.MethodGet, mapsPath+"?watch=true", "")
		require.NoError(t, err)
		cancel()
		_, err = io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		_, err = i.send(ctx, http.MethodGet, mapsPath+"?resourceVersion=1000000", "")
		require.ErrorIs(t, err, context.Canceled)
	})
}
