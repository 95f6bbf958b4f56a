package testserver_test

import (
	"bufio"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

func containers(names ...string) []any {
	var out []any
	for _, n := range names {
		out = append(out, doc{"name": n})
	}
	return out
}

func TestPodLogs(t *testing.T) {
	const path = podsPath + "/web/log"
	web := api.Key{Namespace: "default", Name: "web"}
	inBubble(t, testserver.Options{ImmediateDeletion: true}, func(b *bench) {
		text := func(query string) string {
			a := b.do(http.MethodGet, path+query, nil)
			require.Equal(b, 200, a.code, "%s", a.body)
			require.Equal(b, "text/plain", a.header.Get("Content-Type"))
			return string(a.body)
		}
		b.refused(404, http.MethodGet, path, nil)
		require.Error(b, b.AppendLog(web, "mill", "too early"))
		b.ok(http.MethodPost, podsPath, doc{"metadata": meta("web"), "spec": doc{"containers": containers("mill")}})
		require.Empty(b, text(""))
		require.NoError(b, b.AppendLog(web, "mill", "one", "two"))
		<-time.After(10 * time.Second)
		require.NoError(b, b.AppendLog(web, "mill", "three"))

		require.Equal(b, "one\ntwo\nthree\n", text(""))
		require.Equal(b, "one\ntwo\nthree\n", text("?container=mill"))
		require.Equal(b, "two\nthree\n", text("?tailLines=2"))
		require.Equal(b, "one\ntwo\nthree\n", text("?tailLines=9"))
		require.Empty(b, text("?tailLines=0"))
		require.Equal(b, "one\ntw", text("?limitBytes=6"))
		require.Equal(b, "three\n", text("?sinceSeconds=5"))
		require.Equal(b, "three\n", text("?sinceTime=2000-01-01T00:00:05Z"))
		require.Equal(b, "2000-01-01T00:00:10.000000Z three\n", text("?tailLines=1&timestamps=true"))
		for _, query := range []string{"?tailLines=x", "?sinceTime=noon", "?container=weir", "?previous=true"} {
			b.refused(400, http.MethodGet, path+query, nil)
		}
		for query, why := range map[string]string{
			"?tailLines=-1": "tailLines: Invalid value: -1: must be greater than or equal to 0",
			"?limitBytes=0": "limitBytes: Invalid value: 0: must be greater than 0", "?sinceSeconds=0": "sinceSeconds: Invalid value: 0: must be greater than 0",
			"?sinceSeconds=1&sinceTime=2000-01-01T00:00:05Z": "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
		} {
			status := b.refused(422, http.MethodGet, path+query, nil)
			require.Contains(b, status.Message, `PodLogOptions "web" is invalid: `)
			require.Contains(b, status.Message, why)
		}
		b.refused(406, http.MethodGet, path, nil, "Accept", "text/plain")
		b.refused(405, http.MethodPost, path, doc{})

		res := must.Get(b.client.Do(b.request(http.MethodGet, path+"?follow=true&tailLines=1", nil)))(b)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		next := func(want string) {
			b.Helper()
			require.True(b, lines.Scan())
			require.Equal(b, want, lines.Text())
		}
		next("three")
		require.NoError(b, b.AppendLog(web, "mill", "four"))
		next("four")
		b.ok(http.MethodPost, podsPath, pod("other"))
		synctest.Wait()
		require.NoError(b, b.AppendLog(web, "mill", "five", "six"))
		require.NoError(b, b.Delete(pods, web))
		next("five")
		next("six")
		require.False(b, lines.Scan(), "the pod is deleted")
		require.NoError(b, lines.Err())

		b.ok(http.MethodPost, podsPath, doc{"metadata": meta("web"), "spec": doc{"containers": containers("mill", "weir")}})
		require.Contains(b, b.refused(400, http.MethodGet, path, nil).Message, "choose one of: [mill weir]")
		require.Empty(b, text("?container=mill"), "the new pod has a log of its own")
	})
}

func TestAbandonedLogRequestEnds(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, podsPath, pod("web"))
		res := must.Get(b.client.Do(b.request(http.MethodGet, podsPath+"/web/log?follow=true", nil)))(b)
		require.NoError(b, res.Body.Close())
		synctest.Wait() // the bubble checks that no goroutine is left
		require.Equal(b, 200, res.StatusCode)
	})
}
