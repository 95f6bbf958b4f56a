package controlplane

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/keyutil"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
)

// request asks an etcd to serve the API at an address. It contains keys, so it is never printed.
type request struct {
	Address     string
	Certificate []byte // PEM, with its key
	Key         []byte
	Cluster     settings
}

// settings are what all API servers of one etcd have in common. The names in JSON are flags of kube-apiserver.
type settings struct {
	Modes       []string `json:"authorization-mode"`
	Anonymous   bool     `json:"anonymous-auth"`
	Tokens      []token  `json:"token-auth-file"`
	ClientCA    []byte   `json:"client-ca-file"`
	Issuer      string   `json:"service-account-issuer"`
	Keys        [][]byte `json:"service-account-key-file"`
	SigningKey  []byte   `json:"service-account-signing-key-file"`
	Enabled     []string `json:"enable-admission-plugins"`
	Disabled    []string `json:"disable-admission-plugins"`
	Gates       string   `json:"feature-gates"`
	Controllers bool     `json:"LEAT_CONTROLLERS"`
}

// token is a line of a token file.
type token struct {
	Token, Name, UID string
	Groups           []string
}

// differences returns the names of the settings that differ.
func (s settings) differences(t settings) []string {
	fields := func(s settings) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		text, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			panic(fmt.Sprintf("controlplane: encode strings and numbers: %v", err))
		}
		return out
	}
	mine, others := fields(s), fields(t)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(mine)), func(name string) bool {
		return string(mine[name]) == string(others[name])
	})
}

// options returns the options of the cluster.
func (s settings) options(o testserver.Options) (cluster.Options, error) {
	o.TLS, o.HTTP2, o.ManagedFields, o.ClockVersions, o.StrictNamespaces = true, true, true, true, true
	o.NoWatchList = !utilfeature.DefaultFeatureGate.Enabled(genericfeatures.WatchList)
	o.ShardedLists = utilfeature.DefaultFeatureGate.Enabled(genericfeatures.ShardedListAndWatch)
	out := cluster.Options{
		Server: o, RBAC: slices.Contains(s.Modes, "RBAC"), NoAnonymous: !s.Anonymous, Tokens: cluster.Tokens{},
		EnableAdmissionPlugins: slices.Clone(s.Enabled), DisableAdmissionPlugins: s.Disabled,
	}
	if !s.Controllers {
		out.Behaviour = cluster.Behaviour{
			NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true,
		}
	}
	if !slices.Contains(s.Disabled, serviceAccount) && !slices.Contains(s.Enabled, serviceAccount) {
		out.EnableAdmissionPlugins = append(out.EnableAdmissionPlugins, serviceAccount)
	}
	for _, t := range s.Tokens {
		out.Tokens[t.Token] = cluster.User{Name: t.Name, UID: t.UID, Groups: t.Groups}
	}
	if s.ClientCA != nil {
		out.ClientCAs = x509.NewCertPool()
		if !out.ClientCAs.AppendCertsFromPEM(s.ClientCA) {
			return out, errors.New("--client-ca-file: it contains no certificate in PEM")
		}
	}
	out.Accounts.Issuer = s.Issuer
	for _, key := range s.Keys {
		public, err := keyutil.ParsePublicKeysPEM(key)
		if err != nil {
			return out, fmt.Errorf("--service-account-key-file: %w", err)
		}
		out.Accounts.Keys = append(out.Accounts.Keys, public...)
	}
	key, err := keyutil.ParsePrivateKeyPEM(s.SigningKey)
	if err != nil {
		return out, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	var ok bool
	if out.Accounts.SigningKey, ok = key.(crypto.Signer); !ok {
		return out, errors.New("--service-account-signing-key-file: the key cannot sign")
	}
	return out, nil
}

// serviceAccount is a plugin that a cluster has only on request, and kube-apiserver by default.
const serviceAccount = "ServiceAccount"

// setGates sets the feature gates of the process.
func (s settings) setGates() error {
	var of []string
	for gate := range strings.SplitSeq(s.Gates, ",") {
		if gate = strings.TrimPrefix(strings.TrimSpace(gate), "kube:"); gate != "" {
			of = append(of, gate)
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(strings.Join(of, ",")); err != nil {
		return fmt.Errorf("invalid argument %q for \"--feature-gates\" flag: %w", s.Gates, err)
	}
	return nil
}
