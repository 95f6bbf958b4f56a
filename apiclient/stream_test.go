package apiclient_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestPodLogs(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		_, err := c.Stream(t.Context(), podResource, web, "log", nil)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, "get pods default/web/log: ")
		require.ErrorContains(t, must.Err(c.Stream(t.Context(), podResource, api.Key{Name: "web"}, "log", nil)), "pods need a namespace")

		must.Get(s.Create(podResource, newPod("web")))(t)
		require.NoError(t, s.AppendLog(web, "c", "one", "two"))
		read := func(options any) string {
			log := must.Get(c.Stream(t.Context(), podResource, web, "log", options))(t)
			defer log.Close()
			text := must.Get(io.ReadAll(log))(t)
			return string(text)
		}
		require.Equal(t, "one\ntwo\n", read(nil))
		lines := int64(1)
		require.Equal(t, "two\n", read(&corev1.PodLogOptions{Container: "c", TailLines: &lines}))
		require.Equal(t, "one", read(url.Values{"limitBytes": {"3"}}))
		_, err = c.Stream(t.Context(), podResource, web, "log", &corev1.PodLogOptions{Container: "d"})
		require.True(t, apierrors.IsBadRequest(err), "%v", err)

		ctx, cancel := context.WithCancel(t.Context())
		log := must.Get(c.Stream(ctx, podResource, web, "log", &corev1.PodLogOptions{Follow: true}))(t)
		defer log.Close()
		scanner := bufio.NewScanner(log)
		for _, want := range []string{"one", "two", "three"} {
			require.True(t, scanner.Scan())
			require.Equal(t, want, scanner.Text())
			if want == "two" {
				<-time.After(time.Hour) // the stream may wait
				require.NoError(t, s.AppendLog(web, "c", "three"))
			}
		}
		time.AfterFunc(time.Second, cancel)
		require.False(t, scanner.Scan())
		require.ErrorIs(t, scanner.Err(), context.Canceled)
		require.ErrorContains(t, scanner.Err(), "get pods default/web/log: ")
	})
}

// TestAStreamWaitsForItsHead waits for hours, which no other read may do.
func TestAStreamWaitsForItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(5 * time.Hour):
				_, _ = io.WriteString(w, "at last")
			case <-r.Context().Done():
			}
		})
		log := must.Get(newClient(t, cfg).Stream(t.Context(), podResource, web, "log", nil))(t)
		require.Equal(t, "at last", string(must.Get(io.ReadAll(log))(t)))
		require.NoError(t, log.Close())
	})
}

func TestCloseEndsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			flushed(w, "text/plain", "one\n")
			hang(r)
		})
		log := must.Get(newClient(t, cfg).Stream(t.Context(), podResource, web, "log", nil))(t)
		require.Equal(t, "one\n", must.Get(bufio.NewReader(log).ReadString('\n'))(t))
		ended := make(chan error, 1)
		go func() {
			_, err := log.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, log.Close()) // the bubble would not end with an open connection
		require.ErrorContains(t, <-ended, "get pods default/web/log: ")
	})
}

func TestAnIncompleteStream(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		must.Get(s.Create(podResource, newPod("web")))(t)
		require.NoError(t, s.AppendLog(web, "c", "one", "two"))
		s.Inject(faults.Fault{Effect: faults.Cut{After: 5, Abrupt: true}})
		log := must.Get(c.Stream(t.Context(), podResource, web, "log", nil))(t)
		defer log.Close()
		text, err := io.ReadAll(log)
		require.Equal(t, "one\nt", string(text))
		require.True(t, isErrno(err, syscall.ECONNRESET), "%v", err)
		require.ErrorContains(t, err, "get pods default/web/log: ")
	})
}

// TestCompressedStreamsAreNotLate reads each line of a compressed stream before the next one is written.
func TestCompressedStreamsAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
			require.Contains(t, r.Header.Get("Accept"), "text/plain")
			require.Contains(t, r.Header.Get("Accept"), "*/*")
			w.Header().Set("Content-Encoding", "gzip")
			gz := gzip.NewWriter(w)
			for _, line := range []string{"one\n", "two\n"} {
				_, _ = io.WriteString(gz, line)
				_ = gz.Flush()
				_ = http.NewResponseController(w).Flush()
				<-read
			}
			_ = gz.Close()
		})
		log := must.Get(newClient(t, cfg).Stream(t.Context(), podResource, web, "log", nil))(t)
		defer log.Close()
		lines := bufio.NewReader(log)
		for _, want := range []string{"one\n", "two\n"} {
			require.Equal(t, want, must.Get(lines.ReadString('\n'))(t))
			read <- struct{}{}
		}
		_, err := lines.ReadString('\n')
		require.Equal(t, io.EOF, err)
	})
}
