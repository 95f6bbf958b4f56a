package controlplane

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/keyutil"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

// clusterOptions returns the options of the cluster, except those that depend on feature gates.
func clusterOptions(s front.Settings, o testserver.Options) (cluster.Options, error) {
	o.TLS, o.HTTP2, o.ManagedFields, o.ClockVersions, o.StrictNamespaces = true, true, true, true, true
	o.InFlight = testserver.InFlight{Reads: s.Reads, Writes: s.Writes, Queue: s.Queue}
	out := cluster.Options{
		Server: o, RBAC: slices.Contains(s.Modes, "RBAC") && !slices.Contains(s.Modes, "AlwaysAllow"),
		NoAnonymous: !s.Anonymous, Tokens: cluster.Tokens{},
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

// setGates sets the feature gates of the process, and the options that depend on them.
func setGates(gates string, o *testserver.Options) error {
	if err := parseGates(utilfeature.DefaultMutableFeatureGate, gates); err != nil {
		return err
	}
	o.NoWatchList = !utilfeature.DefaultFeatureGate.Enabled(genericfeatures.WatchList)
	o.ShardedLists = utilfeature.DefaultFeatureGate.Enabled(genericfeatures.ShardedListAndWatch)
	return nil
}

// parseGates sets feature gates in to.
func parseGates(to interface{ Set(value string) error }, gates string) error {
	var of []string
	for gate := range strings.SplitSeq(gates, ",") {
		if gate = strings.TrimPrefix(strings.TrimSpace(gate), "kube:"); gate != "" {
			of = append(of, gate)
		}
	}
	if err := to.Set(strings.Join(of, ",")); err != nil {
		return fmt.Errorf("invalid argument %q for \"--feature-gates\" flag: %w", gates, err)
	}
	return nil
}
