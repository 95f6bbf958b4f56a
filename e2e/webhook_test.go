package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	logs "go.uber.org/zap/zaptest/observer"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/examples/webhooks/hooks"
	"github.com/leatproject/leat/examples/webhooks/job"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

var trainingJobs = api.Resource{
	Group: "training.leat.example", Version: "v1", Kind: "TrainingJob", Plural: "trainingjobs", Namespaced: true,
}

// definitionFile is what a reader of the example applies.
const definitionFile = "../examples/webhooks/job/definition.yaml"

// trainingDefinition is where the definition of TrainingJobs is.
const trainingDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.training.leat.example"

// lab is a namespace for training jobs, and a kubeconfig for kubectl.
type lab struct {
	*collection
	kubeconfig string
}

// training is a part of a job's spec.
type training map[string]any

func (s training) patch() map[string]any { return map[string]any{"spec": s} }

// replicas has the number of replicas of each type.
type replicas map[string]int

// MarshalJSON writes the numbers with one template for all types.
func (r replicas) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	for name, n := range r {
		all[name] = map[string]any{
			"replicas": n, "restartPolicy": "ExitCode",
			"template": map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "tensorflow", "image": "mnist:1"}}}},
		}
	}
	return json.Marshal(all)
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{collection: newCollection(t, trainingJobs, `{}`), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	l.undefine(t) // an earlier run may have left it
	require.NoError(t, kubeconfig.Write(l.kubeconfig, adminConfig(), l.namespace))
	return l
}

func (l *lab) undefine(t *testing.T) {
	t.Helper()
	_, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodDelete, trainingDefinition, nil)
	require.NoError(t, err)
	require.NoError(t, eventually(t.Context(), func() error {
		status, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, l.path(), nil)
		if err == nil && status != http.StatusNotFound {
			err = errors.New("the server knows training jobs still")
		}
		return err
	}))
}

// define creates the definition and waits until the server serves TrainingJobs.
func (l *lab) define(t *testing.T) {
	t.Helper()
	out, err := l.kubectl(t, "apply", "-f", definitionFile).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, eventually(t.Context(), func() error {
		_, err := server.Must(t.Context(), http.MethodGet, l.path(), nil)
		return err
	}))
}

func (l *lab) kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join("bin", "kubectl"), append([]string{"--kubeconfig", l.kubeconfig}, args...)...)
}

func trainingJob(name string, spec training) map[string]any {
	return map[string]any{
		"apiVersion": trainingJobs.GroupVersion().String(), "kind": trainingJobs.Kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}
}

func (l *lab) submit(t *testing.T, name string, spec training) {
	t.Helper()
	must.Get(l.write(t.Context(), http.MethodPost, l.path(), trainingJob(name, spec)))(t)
}

// observedRules are the rules of TrainingJobs. They panic for one name, and note which requests were dry runs.
type observedRules struct {
	hooks.Rules
	dryRuns *[]bool
}

func (r observedRules) Default(ctx context.Context, j *job.TrainingJob) error {
	if j.Name == "panic" {
		panic("no such job")
	}
	return r.Rules.Default(ctx, j)
}

func (r observedRules) ValidateCreate(ctx context.Context, j *job.TrainingJob) (warnings []string, err error) {
	*r.dryRuns = append(*r.dryRuns, webhook.RequestFrom(ctx).DryRun)
	return r.Rules.ValidateCreate(ctx, j)
}

// loopback is a CertificateSource with the certificate of package httptest, which is its own authority.
type loopback struct{ pair tls.Certificate }

func newLoopback() loopback {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return loopback{s.TLS.Certificates[0]}
}

func (l loopback) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.pair.Certificate[0]})
}

// Run waits, because the certificate does not change.
func (loopback) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (l loopback) Certificate(context.Context) (*tls.Certificate, error) { return &l.pair, nil }

// hookServer is a webhook server of TrainingJobs that the API server reaches on loopback.
type hookServer struct {
	*lab
	url     string
	ca      []byte
	logs    *logs.ObservedLogs
	dryRuns []bool
}

// startHooks starts the server with a certificate that belongs to the authority ca. If ca is nil, the source tells the
// API server.
func startHooks(t *testing.T, ca []byte, certificates func(*lab) webhook.CertificateSource) *hookServer {
	t.Helper()
	core, logged := logs.New(zap.DebugLevel)
	h := &hookServer{lab: newLab(t), ca: ca, logs: logged}
	s := must.Get(webhook.New(webhook.Options{
		Address: "127.0.0.1:0", Certificates: certificates(h.lab), Logger: zap.New(core),
		Limits: webhook.Limits{MaxAdmissionBytes: 64 << 10},
	}))(t)
	rules := observedRules{dryRuns: &h.dryRuns}
	hooks.Add(s, rules, rules)
	fixture.Start(t, s.Run)
	<-s.Synced()
	h.url = "https://" + s.Addr().String()
	return h
}

// The files of the example that a reader applies.
const (
	conversionFile = "../examples/webhooks/hooks/conversion.yaml"
	webhooksFile   = "../examples/webhooks/hooks/webhooks.yaml"
)

// convertible serves the version v1alpha1 with the conversion webhook. The file has a Service in place of the URL.
func (h *hookServer) convertible(t *testing.T) {
	t.Helper()
	text := must.Get(os.ReadFile(conversionFile))(t)
	var patch []map[string]any
	require.NoError(t, yaml.Unmarshal(text, &patch))
	conversion := patch[1]["value"].(map[string]any)["webhook"].(map[string]any)
	h.redirect(t, conversion)
	edited := filepath.Join(t.TempDir(), "conversion.json")
	body := must.Get(json.Marshal(patch))(t)
	require.NoError(t, os.WriteFile(edited, body, 0o600))
	out, err := h.kubectl(t, "patch", "crd", job.DefinitionName, "--type=json", "--patch-file", edited).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, eventually(t.Context(), func() error {
		_, err := server.Must(t.Context(), http.MethodGet, h.old(), nil)
		return err
	}))
}

// redirect makes a webhook of a file one at the URL of the test, because the API server of the test has no Services.
func (h *hookServer) redirect(t *testing.T, webhook map[string]any) {
	t.Helper()
	service := webhook["clientConfig"].(map[string]any)["service"].(map[string]any)
	require.Equal(t, "trainingjob/trainingjob", fmt.Sprint(service["namespace"], "/", service["name"]))
	webhook["clientConfig"] = map[string]any{"url": h.url + service["path"].(string), "caBundle": h.ca}
}

// configure creates the configuration of a kind that the example has, with one change, and deletes it with the test.
func (h *hookServer) configure(t *testing.T, kind string, edit func(webhook map[string]any)) {
	t.Helper()
	text := must.Get(os.ReadFile(webhooksFile))(t)
	var configuration map[string]any
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(document, "\nkind: "+kind+"WebhookConfiguration\n") {
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &configuration))
		}
	}
	require.NotNil(t, configuration, kind)
	hook := configuration["webhooks"].([]any)[0].(map[string]any)
	h.redirect(t, hook)
	hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": h.namespace}}
	edit(hook)
	collection := "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "webhookconfigurations"
	configuration["metadata"] = map[string]any{"name": h.namespace}
	body := must.Get(json.Marshal(configuration))(t)
	must.Get(server.Must(t.Context(), http.MethodPost, collection, body))(t)
	t.Cleanup(func() {
		must.Get(server.Must(context.Background(), http.MethodDelete, collection+"/"+h.namespace, nil))(t)
	})
}

func unedited(map[string]any) {}

// old returns a path of version v1alpha1.
func (h *hookServer) old(name ...string) string {
	return strings.Replace(h.path(name...), "/v1/", "/v1alpha1/", 1)
}

// send sends an object and returns the answer with its code and its warnings.
func (h *hookServer) send(t *testing.T, method, path string, object any) (code int, warnings []string, answer map[string]any) {
	t.Helper()
	body := must.Get(json.Marshal(object))(t)
	request := must.Get(http.NewRequestWithContext(t.Context(), method, server.URL()+path, bytes.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	client := server.HTTPClient(cluster.AdminToken)
	defer client.CloseIdleConnections()
	response := must.Get(client.Do(request))(t)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
	return response.StatusCode, response.Header.Values("Warning"), answer
}

// refused requires that a new job is refused with a code and a part of a message.
func (h *hookServer) refused(t *testing.T, j map[string]any, code int, message string) {
	t.Helper()
	got, _, answer := h.send(t, http.MethodPost, h.path(), j)
	require.Equal(t, code, got, "%v", answer)
	require.Contains(t, answer["message"], message)
}

// TestWebhooks runs a mutating, a validating and a conversion webhook of TrainingJobs.
func TestWebhooks(t *testing.T) {
	certificate := newLoopback()
	h := startHooks(t, certificate.ca(), func(*lab) webhook.CertificateSource { return certificate })
	h.define(t)
	h.convertible(t)
	defer h.undefine(t) // while the conversion still works
	t.Run("conversion", h.converts)
	t.Run("defaults", h.defaults)
	t.Run("validation", h.validates)
	t.Run("failures", h.fails)
	t.Run("switched off", h.switchesOff)
}

// switchesOff replaces the definition with the one of the example, as its README says.
func (h *hookServer) switchesOff(t *testing.T) {
	out, err := h.kubectl(t, "replace", "-f", definitionFile).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, eventually(t.Context(), func() error {
		code, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, h.old("new"), nil)
		if err == nil && code != http.StatusNotFound {
			err = fmt.Errorf("v1alpha1 is still served: %d", code)
		}
		return err
	}))
	code, _, answer := h.send(t, http.MethodGet, h.path("new"), nil)
	require.Equal(t, http.StatusOK, code, "%v", answer)
}

// converts writes a job in one version and reads it in the other.
func (h *hookServer) converts(t *testing.T) {
	h.submit(t, "new", training{"successPolicy": "AllWorkers", "backoffLimit": 3, "replicas": replicas{"chief": 1, "worker": 2}})
	code, _, old := h.send(t, http.MethodGet, h.old("new"), nil)
	require.Equal(t, http.StatusOK, code, "%v", old)
	require.Equal(t, "training.leat.example/v1alpha1", old["apiVersion"])
	spec := old["spec"].(map[string]any)
	require.Equal(t, map[string]any{"backoffLimit": 3.0}, spec["runPolicy"])
	require.Equal(t, 2.0, spec["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any)["replicas"])

	spec["runPolicy"] = map[string]any{"backoffLimit": 5}
	code, _, answer := h.send(t, http.MethodPut, h.old("new"), old)
	require.Equal(t, http.StatusOK, code, "%v", answer)
	_, _, now := h.send(t, http.MethodGet, h.path("new"), nil)
	require.Equal(t, "AllWorkers", now["spec"].(map[string]any)["successPolicy"], "an old client does not lose new fields")
	require.Equal(t, 5.0, now["spec"].(map[string]any)["backoffLimit"])
	require.NotContains(t, now["metadata"], "annotations")

	h.submit(t, "second", training{"replicas": replicas{"worker": 1}})
	_, _, list := h.send(t, http.MethodGet, h.old(), nil)
	require.Len(t, list["items"], 2)

	boss := trainingJob("boss", training{"tfReplicaSpecs": map[string]any{"Boss": map[string]any{"template": map[string]any{}}}})
	boss["apiVersion"] = "training.leat.example/v1alpha1"
	code, _, answer = h.send(t, http.MethodPost, h.old(), boss)
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, answer["message"], "convert "+h.namespace+"/boss from training.leat.example/v1alpha1 TrainingJob to v1: spec.tfReplicaSpecs: Boss is not")
}

func (h *hookServer) defaults(t *testing.T) {
	h.configure(t, "Mutating", unedited)
	require.NoError(t, eventually(t.Context(), func() error { // until the API server has read the configuration
		code, _, answer := h.send(t, http.MethodPost, h.path()+"?dryRun=All", trainingJob("try", training{"replicas": replicas{"worker": 1}}))
		if code != http.StatusCreated || answer["spec"].(map[string]any)["successPolicy"] != "Leader" {
			return fmt.Errorf("%d: %v", code, answer)
		}
		return nil
	}))
	j := trainingJob("defaults", training{"replicas": map[string]any{
		"worker": map[string]any{"template": map[string]any{"future": map[string]any{"field": 1}}},
	}})
	code, _, answer := h.send(t, http.MethodPost, h.path(), j)
	require.Equal(t, http.StatusCreated, code, "%v", answer)
	worker := answer["spec"].(map[string]any)["replicas"].(map[string]any)["worker"].(map[string]any)
	require.Equal(t, 1.0, worker["replicas"])
	require.Equal(t, "Never", worker["restartPolicy"])
	require.Equal(t, map[string]any{"field": 1.0}, worker["template"].(map[string]any)["future"], "a field that the type does not declare")
	h.refused(t, trainingJob("panic", training{"replicas": replicas{"worker": 1}}), http.StatusInternalServerError, "the webhook panicked; its log has the reason")
	require.Equal(t, 1, h.logs.FilterMessage("a webhook panicked").Len())
	h.refused(t, trainingJob("odd", training{"replicas": 7}), http.StatusBadRequest, "the webhook cannot decode the object: ")
}

func (h *hookServer) validates(t *testing.T) {
	h.configure(t, "Mutating", unedited)
	h.configure(t, "Validating", unedited)
	leaderless := trainingJob("leaderless", training{"replicas": replicas{"ps": 1}})
	var answer map[string]any
	require.NoError(t, eventually(t.Context(), func() (err error) {
		var code int
		if code, _, answer = h.send(t, http.MethodPost, h.path()+"?dryRun=All", leaderless); code != http.StatusUnprocessableEntity {
			err = fmt.Errorf("%d: %v", code, answer)
		}
		return err
	}))
	require.Equal(t, "spec.replicas", answer["details"].(map[string]any)["causes"].([]any)[0].(map[string]any)["field"])
	require.Contains(t, answer["message"], "a chief, a master or a worker is needed")
	require.Contains(t, h.dryRuns, true)
	code, _, _ := h.send(t, http.MethodGet, h.path("leaderless"), nil)
	require.Equal(t, http.StatusNotFound, code)

	kept := trainingJob("kept", training{"replicas": replicas{"worker": 1}})
	kept["metadata"] = map[string]any{"name": "kept", "labels": map[string]any{"keep": "yes"}}
	code, warnings, answer := h.send(t, http.MethodPost, h.path(), kept)
	require.Equal(t, http.StatusCreated, code, "%v", answer)
	require.Equal(t, []string{`299 - "spec.backoffLimit: a job without a limit may restart forever"`}, warnings)
	_, err := h.patch(t.Context(), "kept", training{"successPolicy": "AllWorkers"}.patch())
	require.ErrorContains(t, err, "the success policy cannot change")
	require.True(t, hasCode(err, http.StatusForbidden), "%v", err)
	code, _, answer = h.send(t, http.MethodDelete, h.path("kept"), nil)
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, answer["message"], "the job has the label keep=yes")
	must.Get(h.patch(t.Context(), "kept", map[string]any{"metadata": map[string]any{"labels": map[string]any{"keep": nil}}}))(t)
	code, _, _ = h.send(t, http.MethodDelete, h.path("kept"), nil)
	require.Equal(t, http.StatusOK, code)
}

// fails has configurations and requests that a user has to correct. The API server shows what the webhook said.
func (h *hookServer) fails(t *testing.T) {
	valid := trainingJob("fails", training{"replicas": replicas{"worker": 1}})
	for name, c := range map[string]struct {
		edit    func(webhook map[string]any)
		message string // of the answer to the user
		logged  string
	}{
		"another authority": {
			func(w map[string]any) { w["clientConfig"].(map[string]any)["caBundle"] = server.CA() }, "certificate signed by unknown authority", "TLS handshake error",
		},
		"another path": {
			func(w map[string]any) { w["clientConfig"].(map[string]any)["url"] = h.url + "/nothing" },
			`there is no webhook at the path "/nothing"`, "a request was refused",
		},
		"another version of reviews": {
			func(w map[string]any) { w["admissionReviewVersions"] = []string{"v1beta1"} },
			"this webhook supports only admission.k8s.io/v1 AdmissionReview", "a request was refused",
		},
		"another version of jobs": {
			func(w map[string]any) { w["rules"].([]any)[0].(map[string]any)["apiVersions"] = []string{"v1alpha1"} },
			"this webhook is for training.leat.example/v1 TrainingJob, and the review is about training.leat.example/v1alpha1", "a request was refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.logs.TakeAll()
			h.configure(t, "Validating", c.edit)
			require.NoError(t, eventually(t.Context(), func() error {
				code, _, answer := h.send(t, http.MethodPost, h.path()+"?dryRun=All", valid)
				if message, _ := answer["message"].(string); !strings.Contains(message, c.message) {
					return fmt.Errorf("%d: %v", code, answer)
				}
				return nil
			}))
			require.NoError(t, eventually(t.Context(), func() error {
				if h.logs.FilterMessageSnippet(c.logged).Len() == 0 {
					return fmt.Errorf("the log lacks %q", c.logged)
				}
				return nil
			}))
		})
	}
	t.Run("a large object", func(t *testing.T) {
		h.configure(t, "Validating", unedited)
		large := trainingJob("large", training{"replicas": replicas{"worker": 1}})
		large["metadata"] = map[string]any{"name": "large", "annotations": map[string]any{"a": strings.Repeat("x", 100<<10)}}
		require.NoError(t, eventually(t.Context(), func() error {
			code, _, answer := h.send(t, http.MethodPost, h.path()+"?dryRun=All", large)
			if message, _ := answer["message"].(string); !strings.Contains(message, "the body has more than 65536 bytes") {
				return fmt.Errorf("%d: %v", code, message)
			}
			return nil
		}))
	})
}

// TestSelfSignedCertificates runs the webhooks with a certificate that the program makes by itself.
func TestSelfSignedCertificates(t *testing.T) {
	client := newClient(t, adminConfig())
	h := startHooks(t, nil, func(l *lab) webhook.CertificateSource {
		certificates := must.Get(selfsigned.New(selfsigned.Options{
			Client: client, Secret: api.Key{Namespace: l.namespace, Name: "webhooks"}, Hosts: []string{"127.0.0.1"}, Interval: time.Second,
			Mutating: []string{l.namespace}, Validating: []string{l.namespace}, CustomResources: []string{job.DefinitionName},
		}))(t)
		return certificates
	})
	h.define(t)
	h.convertible(t)
	defer h.undefine(t)
	h.configure(t, "Mutating", unedited)
	h.configure(t, "Validating", unedited)
	leaderless := trainingJob("leaderless", training{"tfReplicaSpecs": map[string]any{"PS": map[string]any{"template": map[string]any{}}}})
	leaderless["apiVersion"] = "training.leat.example/v1alpha1"
	refused := func() error {
		code, _, answer := h.send(t, http.MethodPost, h.old(), leaderless)
		if code != http.StatusUnprocessableEntity {
			return fmt.Errorf("%d: %v", code, answer)
		}
		return nil
	}
	require.NoError(t, eventually(t.Context(), refused), "all three webhooks are trusted")

	validating := "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/" + h.namespace
	bundle := func() []byte {
		var c struct {
			Webhooks []struct{ ClientConfig struct{ CABundle []byte } }
		}
		answer := must.Get(server.Must(t.Context(), http.MethodGet, validating, nil))(t)
		require.NoError(t, json.Unmarshal(answer, &c))
		return c.Webhooks[0].ClientConfig.CABundle
	}
	trusted := bundle()
	code, _, configuration := h.send(t, http.MethodGet, validating, nil)
	require.Equal(t, http.StatusOK, code)
	configuration["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = server.CA()
	code, _, configuration = h.send(t, http.MethodPut, validating, configuration)
	require.Equal(t, http.StatusOK, code, "%v", configuration)
	require.NoError(t, eventually(t.Context(), func() error {
		if !bytes.Equal(bundle(), trusted) {
			return errors.New("the authority is another one")
		}
		return refused()
	}), "what another client has changed is repaired")
}
