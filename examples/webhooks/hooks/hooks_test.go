package hooks_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/examples/webhooks/hooks"
	"github.com/leatproject/leat/webhook"
)

const worker = `"replicas":{"worker":{"replicas":1,"restartPolicy":"Never","template":{"spec":{"containers":[{"name":"tensorflow","image":"mnist:1"}]}}}}`

// spec returns a job in v1.
func spec(more string) string {
	return `{"apiVersion":"training.leat.example/v1","kind":"TrainingJob","metadata":{"namespace":"lab","name":"mnist"},"spec":{` + more + worker + `}}`
}

// send sends a review to a server with the webhooks, and returns the response in the answer.
func send(t *testing.T, path, review string) map[string]any {
	t.Helper()
	s, err := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"})
	require.NoError(t, err)
	hooks.Add(s, hooks.Rules{}, hooks.Rules{})
	request := httptest.NewRequest("POST", path, strings.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	var reviewed struct{ Response map[string]any }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &reviewed), "%s", answer.Body)
	require.NotNil(t, reviewed.Response, "%s", answer.Body)
	return reviewed.Response
}

// admission returns a review. The object or the old one may be empty.
func admission(operation, object, old string) string {
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"` + operation + `",
		"kind":{"group":"training.leat.example","version":"v1","kind":"TrainingJob"},"namespace":"lab","name":"mnist"`
	if object != "" {
		review += `,"object":` + object
	}
	if old != "" {
		review += `,"oldObject":` + old
	}
	return review + `}}`
}

func TestDefaults(t *testing.T) {
	response := send(t, hooks.MutatePath, admission("CREATE", spec(""), ""))
	require.Equal(t, true, response["allowed"])
	require.Equal(t, "JSONPatch", response["patchType"])
	response = send(t, hooks.MutatePath, admission("CREATE", spec(`"successPolicy":"Leader","cleanPodPolicy":"Running",`), ""))
	require.NotContains(t, response, "patch")
}

func TestValidation(t *testing.T) {
	all := `"cleanPodPolicy":"Running","backoffLimit":1,`
	leader := spec(`"successPolicy":"Leader",` + all)
	kept := strings.Replace(leader, `"name":"mnist"}`, `"name":"mnist","labels":{"keep":"yes"}}`, 1)
	for name, c := range map[string]struct{ operation, object, old, refusal, warning string }{
		"valid":                  {operation: "CREATE", object: leader},
		"without a limit":        {operation: "CREATE", object: strings.Replace(leader, `"backoffLimit":1,`, "", 1), warning: "may restart forever"},
		"invalid":                {operation: "CREATE", object: strings.Replace(leader, `"worker"`, `"ps"`, 1), refusal: "a chief, a master or a worker is needed"},
		"without defaults":       {operation: "CREATE", object: strings.Replace(leader, `"replicas":1,`, "", 1)},
		"older than the hooks":   {operation: "UPDATE", object: leader, old: spec("")},
		"another success policy": {operation: "UPDATE", object: spec(`"successPolicy":"AllWorkers",` + all), old: leader, refusal: "cannot change"},
		"an invalid update":      {operation: "UPDATE", object: strings.Replace(leader, `"backoffLimit":1`, `"backoffLimit":-1`, 1), old: leader, refusal: "spec.backoffLimit"},
		"deleted":                {operation: "DELETE", old: leader},
		"kept":                   {operation: "DELETE", old: kept, refusal: "keep=yes"},
	} {
		response := send(t, hooks.ValidatePath, admission(c.operation, c.object, c.old))
		require.Equal(t, c.refusal == "", response["allowed"], name)
		require.Contains(t, fmt.Sprint(response["status"]), c.refusal, name)
		require.Contains(t, fmt.Sprint(response["warnings"]), c.warning, name)
	}
}

func conversion(version, object string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"training.leat.example/` +
		version + `","objects":[` + object + `]}}`
}

// TestOldClientsLoseNothing converts a job to v1alpha1 and back.
func TestOldClientsLoseNothing(t *testing.T) {
	there := send(t, hooks.ConvertPath, conversion("v1alpha1", spec(`"successPolicy":"AllWorkers","suspend":true,"backoffLimit":3,`)))
	old := there["convertedObjects"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"suspend": true, "backoffLimit": 3.0}, old["spec"].(map[string]any)["runPolicy"])
	require.Contains(t, old["spec"].(map[string]any)["tfReplicaSpecs"], "Worker")
	old["spec"].(map[string]any)["runPolicy"] = map[string]any{"backoffLimit": 5}
	text, err := json.Marshal(old)
	require.NoError(t, err)
	back := send(t, hooks.ConvertPath, conversion("v1", string(text)))["convertedObjects"].([]any)[0].(map[string]any)
	require.Equal(t, "AllWorkers", back["spec"].(map[string]any)["successPolicy"])
	require.Equal(t, 5.0, back["spec"].(map[string]any)["backoffLimit"])
	require.NotContains(t, back["metadata"], "annotations")
}

func TestConversionsThatFail(t *testing.T) {
	old := `{"apiVersion":"training.leat.example/v1alpha1","kind":"TrainingJob","metadata":{"namespace":"lab","name":"mnist"%s},"spec":{"tfReplicaSpecs":{%s}}}`
	for message, object := range map[string]string{
		"spec.tfReplicaSpecs: Boss is not the type of a replica":  fmt.Sprintf(old, "", `"Boss":{"template":{}}`),
		"the annotation training.leat.example/v1-spec is damaged": fmt.Sprintf(old, `,"annotations":{"training.leat.example/v1-spec":"{"}`, ""),
	} {
		response := send(t, hooks.ConvertPath, conversion("v1", object))
		require.Equal(t, "Failure", response["result"].(map[string]any)["status"])
		require.Contains(t, response["result"].(map[string]any)["message"], message)
	}
}
