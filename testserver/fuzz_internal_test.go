package testserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// FuzzHandle sends arbitrary requests. Every answer must be readable, nothing may panic, and the store must stay
// consistent.
func FuzzHandle(f *testing.F) {
	const podsPath = "/api/v1/namespaces/default/pods"
	f.Add("GET", podsPath, "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAxLCJzdGFydCI6ImEifQ", "application/json", "", "")
	f.Add("GET", podsPath, "watch=1&resourceVersion=0&labelSelector=a%3Db&fieldSelector=metadata.name%3Da", "*/*;q=0.5", "", "")
	f.Add("GET", podsPath+"/a", "", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", "")
	f.Add("POST", podsPath, "fieldManager=x", "", "application/json", `{"metadata":{"name":"b","labels":{"a":"b"}},"spec":{"n":[1,{"name":"x"}]}}`)
	f.Add("POST", podsPath, "", "", "application/yaml", "metadata: {name: c}\n")
	f.Add("PUT", podsPath+"/a", "", "", "", `{"metadata":{"name":"a","managedFields":[{}]}}`)
	f.Add("PATCH", podsPath+"/a", "", "", "application/merge-patch+json", `{"spec":null}`)
	f.Add("PATCH", podsPath+"/a/status", "", "", "application/json-patch+json", `[{"op":"add","path":"/status/x","value":1}]`)
	f.Add("PATCH", podsPath+"/a", "fieldManager=m&force=1", "", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"Pod","spec":{"l":[{"name":"x"}]}}`)
	f.Add("DELETE", podsPath+"/a", "propagationPolicy=Orphan", "", "application/json", `{"preconditions":{"uid":"x"}}`)
	f.Add("DELETE", podsPath, "labelSelector=a", "", "", "")
	f.Add("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "", "", `{"metadata":{"name":"xs.y"},"spec":{"group":"y","scope":"Cluster","names":{"plural":"xs","kind":"X"},"versions":[{"name":"v1","served":true,"storage":true}]}}`)
	f.Add("POST", podsPath+"/a/binding", "", "", "", `{"target":{"name":"n"}}`)
	f.Add("GET", "/apis/apps/v1", "", "", "", "")
	pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	f.Fuzz(func(t *testing.T, method, path, query, accept, contentType, body string) {
		s := New(Options{VersionWait: -1, ManagedFields: true})
		_, err := s.Create(pods, object.Tree{"metadata": object.Tree{"name": "a", "namespace": "default", "labels": object.Tree{"a": "b"}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // otherwise a watch would not end
		r := (&http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1,
		}).WithContext(ctx)
		r.Header.Set("Accept", accept)
		r.Header.Set("Content-Type", contentType)
		if body != "" {
			r.Body = readCloser{bytes.NewReader([]byte(body))}
		}
		w := httptest.NewRecorder()
		aborted := false
		func() {
			defer func() {
				if p := recover(); p != nil {
					err, ok := p.(error)
					if !ok || !errors.Is(err, http.ErrAbortHandler) {
						panic(p)
					}
					aborted = true
				}
			}()
			s.handle(w, r)
		}()
		if !aborted {
			require.GreaterOrEqual(t, w.Code, 200)
			require.NotEmpty(t, w.Header().Get("Content-Type"))
		}
		for _, c := range s.store.Served() {
			for rec := range c.All("") {
				tree := rec.Tree()
				require.Equal(t, rec.Key.Name, object.StringAt(object.Metadata(tree), "name"))
				require.Equal(t, rec.UID() != "", object.StringAt(object.Metadata(tree), "uid") != "")
			}
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
