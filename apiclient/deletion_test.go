package apiclient_test

import (
	"net/http"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDeleteObjectReturnsTheAnswer(t *testing.T) {
	pod := func(metadata string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","uid":"u1","resourceVersion":"8"` + metadata + `}}`
	}
	for _, tc := range []struct {
		name, body string
		uid        types.UID
		version    string
		waits      bool
	}{
		{"a status with details", `{"kind":"Status","status":"Success","details":{"name":"web","uid":"u1"}}`, "u1", "", false},
		{"a status without", `{"kind":"Status","status":"Success"}`, "", "", false},
		{"the last state", pod(`,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0`), "u1", "8", false},
		{"the last state of an object that was never marked", pod(``), "u1", "8", false},
		{"time to stop", pod(`,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30`), "u1", "8", true},
		{"finalizers", pod(`,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"]`), "u1", "8", true},
		{"no JSON", `{"kind":`, "", "", false},
		{"another kind", `{"apiVersion":"v1","kind":"Node","metadata":{"uid":"u1"}}`, "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got recorded
			uid := types.UID("u1")
			d := must.Get(pods(t, onLoopback(t, recorder(&got, tc.body))).DeleteObject(t.Context(), web, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid},
			}))(t)
			require.Equal(t, http.MethodDelete+" /api/v1/namespaces/default/pods/web", got.Method+" "+got.Path)
			require.JSONEq(t, `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"}}`, got.Body)
			require.Equal(t, tc.uid, d.UID)
			require.Equal(t, tc.waits, d.Waits)
			if tc.version == "" {
				require.Nil(t, d.Object)
			} else {
				require.Equal(t, tc.version, d.Object.ResourceVersion)
			}
		})
	}
	refused := answer(http.StatusConflict, "application/json", `{"kind":"Status","status":"Failure","reason":"Conflict","code":409}`)
	_, err := pods(t, onLoopback(t, refused)).DeleteObject(t.Context(), web, metav1.DeleteOptions{})
	require.True(t, apierrors.IsConflict(err))
	require.ErrorContains(t, err, "delete pods default/web: ")
}
