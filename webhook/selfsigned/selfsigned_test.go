package selfsigned_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

var _ webhook.CertificateSource = (*selfsigned.Source)(nil)

var (
	secrets   = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	secretKey = api.Key{Namespace: "default", Name: "webhook"}
)

const host = "webhooks.default.svc"

// world is a server with a webhook configuration of each kind and a definition.
type world struct{ *testkit.Kit }

func inWorld(t *testing.T, test func(w world)) {
	testkit.Run(t, testkit.Options{Resources: []api.Resource{selfsigned.Mutating, selfsigned.Validating}}, func(k *testkit.Kit) {
		w := world{k}
		w.configure(selfsigned.Mutating, "defaults")
		w.configure(selfsigned.Validating, "rules")
		testkit.Create(k, selfsigned.Definitions, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "mills.example.org"},
			"spec": map[string]any{
				"group": "example.org", "scope": "Namespaced", "names": map[string]any{"plural": "mills", "kind": "Mill"},
				"versions":   []any{map[string]any{"name": "v1", "served": true, "storage": true}},
				"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"url": "https://" + host}}},
			},
		}})
		test(w)
	})
}

func (w world) configure(r api.Resource, name string) {
	hook := func(name string) any {
		return map[string]any{"name": name, "clientConfig": map[string]any{"service": map[string]any{"name": "webhooks"}}}
	}
	testkit.Create(w.Kit, r, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": name},
		"webhooks": []any{hook("a.example.org"), hook("b.example.org")},
	}})
}

// lifetime is that of the certificates of most tests. They are renewed after eight hours.
const lifetime = 12 * time.Hour

// options are the options of all replicas.
func (w world) options() selfsigned.Options {
	return selfsigned.Options{
		Client: w.Client, Secret: secretKey, Hosts: []string{host, "127.0.0.1"}, Logger: w.Logger,
		Lifetime: lifetime, Mutating: []string{"defaults"}, Validating: []string{"rules"}, CustomResources: []string{"mills.example.org"},
	}
}

// replica starts a replica.
func (w world) replica(o selfsigned.Options) *selfsigned.Source {
	s := must.Get(selfsigned.New(o))(w)
	w.Start(s.Run)
	return s
}

// serves returns the certificate of a replica, and requires that every configuration trusts it.
func (w world) serves(s *selfsigned.Source) *tls.Certificate {
	w.Helper()
	c := must.Get(s.Certificate(w.Context()))(w)
	for name, bundle := range w.bundles() {
		require.NoError(w, verify(c, []byte(bundle)), name)
	}
	return c
}

func verify(c *tls.Certificate, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, name := range []string{host, "127.0.0.1"} {
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// configuration is a target of any kind.
type configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Webhooks []struct{ ClientConfig struct{ CABundle []byte } } `json:"webhooks"`
	Spec     struct {
		Conversion struct {
			Webhook struct{ ClientConfig struct{ CABundle []byte } }
		} `json:"conversion"`
	} `json:"spec"`
}

// bundles returns the bundle of every webhook.
func (w world) bundles() map[string]string {
	all := map[string]string{
		"conversion": string(testkit.Get[*configuration](w.Kit, selfsigned.Definitions, api.Key{Name: "mills.example.org"}).Spec.Conversion.Webhook.ClientConfig.CABundle),
	}
	for name, r := range map[string]api.Resource{"defaults": selfsigned.Mutating, "rules": selfsigned.Validating} {
		hooks := testkit.Get[*configuration](w.Kit, r, api.Key{Name: name}).Webhooks
		require.Len(w, hooks, 2)
		for i, h := range hooks {
			all[name+string(rune('0'+i))] = string(h.ClientConfig.CABundle)
		}
	}
	return all
}

func TestTheFirstCertificate(t *testing.T) {
	inWorld(t, func(w world) {
		o := w.options()
		o.Lifetime = 0
		s := w.replica(o)
		w.Idle()
		c := w.serves(s)
		require.Equal(t, time.Now().Add(90*24*time.Hour).UTC(), c.Leaf.NotAfter)
		require.True(t, c.Leaf.NotBefore.Before(time.Now().Add(-30*time.Minute)), "the clock of the API server may be behind")
		data := w.secret()
		require.NotEmpty(t, data["ca.crt"])
		require.Len(t, data, 4, "the key of the authority is not stored")
		restarted := w.replica(w.options())
		w.Idle()
		require.Equal(t, c.Certificate, w.serves(restarted).Certificate, "it is read from the Secret")
		require.Empty(t, w.Errors())
	})
}

func (w world) secret() map[string][]byte {
	return testkit.Get[*struct {
		metav1.ObjectMeta `json:"metadata"`
		Data              map[string][]byte `json:"data"`
	}](w.Kit, secrets, secretKey).Data
}

// TestReplicasShareTheCertificate starts three replicas at the same moment. At each moment of 18 hours, API servers
// trust the certificate of every replica.
func TestReplicasShareTheCertificate(t *testing.T) {
	inWorld(t, func(w world) {
		var replicas []*selfsigned.Source
		for range 3 {
			o := w.options()
			o.Interval = 30 * time.Minute
			replicas = append(replicas, w.replica(o))
		}
		w.Idle()
		seen := map[string]bool{}
		for from := time.Now(); time.Since(from) < 18*time.Hour; {
			for _, r := range replicas {
				seen[string(w.serves(r).Certificate[0])] = true
			}
			pass := 20 * time.Minute
			if len(w.secret()) > 4 { // a renewal
				pass = 2 * time.Minute
			}
			w.Pass(pass)
		}
		require.Len(t, seen, 3, "a certificate for each eight hours")
		require.LessOrEqual(t, certificates(w.secret()["ca.crt"]), 2, "expired authorities are removed")
	})
}

// certificates returns the number of certificates in a bundle.
func certificates(bundle []byte) int { return strings.Count(string(bundle), "BEGIN CERTIFICATE") }

// TestARenewalWaitsForTheConfigurations deletes a configuration before a renewal. The next certificate is used only
// after the configuration is there again with its authority.
func TestARenewalWaitsForTheConfigurations(t *testing.T) {
	inWorld(t, func(w world) {
		o := w.options()
		o.Interval = 10 * time.Minute
		s := w.replica(o)
		w.Idle()
		first := w.serves(s)
		w.Pass(7 * time.Hour)
		testkit.Delete(w.Kit, selfsigned.Mutating, api.Key{Name: "defaults"})
		w.Pass(2 * time.Hour)
		require.NotEmpty(t, w.secret()["next.crt"], "the next certificate is staged")
		w.Pass(time.Hour)
		c := must.Get(s.Certificate(w.Context()))(t)
		require.Equal(t, first.Certificate, c.Certificate)
		require.Equal(t, 1, w.Logs().FilterMessageSnippet("could not be updated").Len(), "the same failure is logged once")

		w.configure(selfsigned.Mutating, "defaults")
		w.Pass(20 * time.Minute)
		require.Equal(t, first.Certificate, w.serves(s).Certificate, "API servers need a moment")
		w.Pass(30 * time.Minute)
		require.NotEqual(t, first.Certificate, w.serves(s).Certificate)
		require.Empty(t, w.secret()["next.crt"])
	})
}

// TestWhatOthersUndoIsRepaired removes what a replica wrote.
func TestWhatOthersUndoIsRepaired(t *testing.T) {
	inWorld(t, func(w world) {
		s := w.replica(w.options())
		w.Idle()
		first := w.serves(s)
		testkit.Edit(w.Kit, selfsigned.Validating, api.Key{Name: "rules"}, func(u *unstructured.Unstructured) {
			u.Object["webhooks"].([]any)[1].(map[string]any)["clientConfig"] = map[string]any{"caBundle": "AAAA"}
		})
		w.Pass(time.Minute)
		require.Equal(t, first, w.serves(s))

		testkit.Delete(w.Kit, secrets, secretKey)
		w.Pass(time.Minute)
		second := w.serves(s)
		require.NotEqual(t, first.Certificate, second.Certificate, "the key is lost")

		for _, damaged := range []string{"tls.crt", "tls.key", "tls.ca.crt", "ca.crt"} {
			testkit.Edit(w.Kit, secrets, secretKey, func(u *unstructured.Unstructured) {
				u.Object["data"].(map[string]any)[damaged] = "AAAA"
			})
			w.Pass(time.Minute)
			w.serves(s)
		}
	})
}

// TestTheSecretOfAnotherProgramStays names a Secret that cert-manager may have made, and then one without data.
func TestTheSecretOfAnotherProgramStays(t *testing.T) {
	inWorld(t, func(w world) {
		data := map[string]any{"tls.crt": "AAAA", "tls.key": "AAAA", "ca.crt": "AAAA"}
		testkit.Create(w.Kit, secrets, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": secretKey.Namespace, "name": secretKey.Name}, "data": data,
		}})
		s := w.replica(w.options())
		w.Pass(10 * time.Minute)
		const text = "selfsigned: the Secret default/webhook has data that this package did not write; delete it or use another name"
		require.EqualError(w, s.NotSynced(), text)
		require.Len(w, w.secret(), 3)
		server := must.Get(webhook.New(webhook.Options{Certificates: s}))(w)
		require.EqualError(w, server.NotSynced(), "webhook: there is no certificate yet: "+text)

		testkit.Edit(w.Kit, secrets, secretKey, func(u *unstructured.Unstructured) { delete(u.Object, "data") })
		w.Pass(time.Minute)
		w.serves(s)
		require.NoError(w, s.NotSynced())
	})
}

// TestOtherHostsNeedAnotherCertificate starts a new version of the program, with another name.
func TestOtherHostsNeedAnotherCertificate(t *testing.T) {
	inWorld(t, func(w world) {
		o := w.options()
		o.Hosts = []string{"old.default.svc"}
		old := w.replica(o)
		w.Idle()
		before := must.Get(old.Certificate(w.Context()))(t)
		s := w.replica(w.options())
		w.Idle()
		w.serves(s)
		bundle := w.secret()["ca.crt"]
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		_, err := before.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now()})
		require.NoError(t, err, "the former certificate stays trusted until it expires")
	})
}

// TestAProgramThatWasAway starts after the certificate has expired.
func TestAProgramThatWasAway(t *testing.T) {
	inWorld(t, func(w world) {
		s := must.Get(selfsigned.New(w.options()))(t)
		program := w.Start(s.Run)
		w.Idle()
		first := w.serves(s)
		program.Stop()
		w.Pass(13 * time.Hour)
		again := w.replica(w.options())
		w.Idle()
		require.NotEqual(t, first.Certificate, w.serves(again).Certificate)
		require.Equal(t, 1, certificates(w.secret()["ca.crt"]))
	})
}

// TestFailuresAreRepeated has a server that fails each request once.
func TestFailuresAreRepeated(t *testing.T) {
	inWorld(t, func(w world) {
		w.Fail("get", "secrets", 1, 403)
		w.Fail("create", "secrets", 1, 500)
		w.Fail("patch", "mutatingwebhookconfigurations.admissionregistration.k8s.io", 1, 403)
		w.Fail("patch", "customresourcedefinitions.apiextensions.k8s.io", 1, 409)
		s := w.replica(w.options())
		w.Pass(20 * time.Second)
		w.serves(s)
	})
}

// TestAnOlderAuthorityIsNotWritten changes the Secret and a configuration between the reads and the write of a replica,
// as another replica does. The replica's write must not replace the newer authority.
func TestAnOlderAuthorityIsNotWritten(t *testing.T) {
	inWorld(t, func(w world) {
		s := w.replica(w.options())
		w.Idle()
		w.serves(s)
		key := api.Key{Name: "rules"}
		write := func(bundle string) {
			testkit.Edit(w.Kit, selfsigned.Validating, key, func(u *unstructured.Unstructured) {
				u.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"] = map[string]any{"caBundle": bundle}
			})
		}
		write("AAAA") // so that the replica has to write
		w.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"patch"}, Resource: "validatingwebhookconfigurations.admissionregistration.k8s.io"}, Times: 1,
			Effect: faults.Delay{For: time.Second},
		})
		w.Pass(time.Minute + 500*time.Millisecond)
		write("BBBB") // the other replica is faster
		w.Pass(time.Second)
		require.Equal(t, "\x04\x10A", w.bundles()["rules0"], "the write of the replica is a conflict")
		w.Pass(time.Minute)
		w.serves(s)
	})
}

func TestATargetWithoutAWebhookIsNamed(t *testing.T) {
	inWorld(t, func(w world) {
		testkit.Edit(w.Kit, selfsigned.Validating, api.Key{Name: "rules"}, func(u *unstructured.Unstructured) { u.Object["webhooks"] = []any{} })
		s := w.replica(w.options())
		w.Pass(time.Hour)
		require.NoError(t, must.Err(s.Certificate(w.Context())), "the other webhooks work")
		logged := w.Logs().FilterMessageSnippet("could not be updated").All()
		require.Len(t, logged, 1)
		require.Equal(t, `ValidatingWebhookConfiguration "rules" has no webhook`, logged[0].ContextMap()["err"])
	})
}

func TestCertificateWaits(t *testing.T) {
	inWorld(t, func(w world) {
		s := must.Get(selfsigned.New(w.options()))(t)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, must.Err(s.Certificate(ctx)), context.DeadlineExceeded)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	inWorld(t, func(w world) {
		for text, edit := range map[string]func(o *selfsigned.Options){
			"Options need a Client":                               func(o *selfsigned.Options) { o.Client = nil },
			"the namespace and the name of a Secret":              func(o *selfsigned.Options) { o.Secret.Namespace = "" },
			"the name of a Secret, and Hosts":                     func(o *selfsigned.Options) { o.Hosts = nil },
			"Options.Lifetime must be at least 1h0m0s":            func(o *selfsigned.Options) { o.Lifetime = time.Minute },
			"and Options.Interval at most a twelfth of it":        func(o *selfsigned.Options) { o.Interval = 2 * time.Hour },
			"selfsigned: Options.Lifetime must be at least 1h0m0": func(o *selfsigned.Options) { o.Interval = -1 },
		} {
			o := w.options()
			edit(&o)
			require.ErrorContains(t, must.Err(selfsigned.New(o)), text)
		}
	})
}

// TestConflictsDoNotMakeABusyLoop has a server that answers each write of the Secret with a conflict, as a faulty
// webhook may.
func TestConflictsDoNotMakeABusyLoop(t *testing.T) {
	inWorld(t, func(w world) {
		w.Fail("create", "secrets", 20, 409)
		s := w.replica(w.options())
		w.Pass(time.Second / 2)
		require.Equal(t, 1, w.Logs().FilterMessageSnippet("could not be updated").Len())
		w.Pass(time.Minute)
		w.serves(s)
	})
}

// TestTheNextCertificateReplacesAnExpiredOne renews while a configuration is missing, until the certificate expires.
func TestTheNextCertificateReplacesAnExpiredOne(t *testing.T) {
	inWorld(t, func(w world) {
		o := w.options()
		o.Mutating = append(o.Mutating, "missing")
		s := w.replica(o)
		w.Pass(11 * time.Hour)
		next := w.secret()["next.crt"]
		require.NotEmpty(t, next)
		w.Pass(time.Hour + 5*time.Minute)
		w.serves(s)
		require.Equal(t, string(next), string(w.secret()["tls.crt"]), "API servers know its authority")
	})
}

// TestReplicasThatDisagreeDoNotFillTheSecret runs replicas of two versions with other hosts for twenty intervals.
func TestReplicasThatDisagreeDoNotFillTheSecret(t *testing.T) {
	inWorld(t, func(w world) {
		w.replica(w.options())
		o := w.options()
		o.Hosts = []string{"old.default.svc"}
		w.replica(o)
		w.Pass(20 * time.Minute)
		require.LessOrEqual(t, certificates(w.secret()["ca.crt"]), selfsigned.MostAuthorities)
	})
}
