package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of the working folder.
const (
	etcdLog      = "etcd.log"
	apiServerLog = "kube-apiserver.log"
	etcdData     = "etcd"
	etcdBackup   = "etcd-backup"
	caFile       = "ca.crt"
	certFile     = "serving.crt"
	keyFile      = "serving.key"
	tokenFile    = "tokens.csv"
	accountKey   = "service-accounts.key"
)

// advertised is the address in the endpoints of the API: one of documentation, which nobody reaches.
const advertised = "192.0.2.1"

// writeFiles writes the files that the API server reads.
func (c *Cluster) writeFiles() error {
	cert, key, err := c.authority.issueServing("127.0.0.1", "localhost")
	if err != nil {
		return err
	}
	_, accounts, err := newKey()
	if err != nil {
		return err
	}
	tokens := []string{
		AdminToken + `,admin,admin-uid,"system:masters"`,
		RestrictedToken + "," + RestrictedUser + `,restricted-uid`,
	}
	for name, content := range map[string][]byte{
		caFile:     c.authority.certPEM,
		certFile:   cert,
		keyFile:    key,
		accountKey: accounts,
		tokenFile:  []byte(strings.Join(tokens, "\n") + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	ready := func(ctx context.Context) error { return probe(ctx, c.plain, c.etcdURL+"/health") }
	return c.launch(ctx, &c.etcd, "etcd", etcdLog, c.etcdFlags(), ready)
}

func (c *Cluster) startAPIServer(ctx context.Context, flags []string) error {
	c.admin.CloseIdleConnections() // connections to the earlier server are useless
	ready := func(ctx context.Context) error {
		if err := probe(ctx, c.admin, c.URL()+"/readyz"); err != nil {
			return err
		}
		// A busy server creates the Service of its API, and its endpoints, after it has become ready.
		status, body, err := do(ctx, c.admin, http.MethodGet, c.URL()+"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", nil)
		if err == nil && !strings.Contains(string(body), advertised) {
			err = fmt.Errorf("the Service of the API has no endpoints: %d: %s", status, body)
		}
		return err
	}
	all := slices.Concat(c.apiServerFlags(), c.o.Flags, flags)
	return c.launch(ctx, &c.apiServer, "kube-apiserver", apiServerLog, all, ready)
}

// launch starts a server and waits until it is ready. If it does not become ready, launch kills it.
func (c *Cluster) launch(ctx context.Context, running **process, name, log string, flags []string,
	ready func(context.Context) error,
) error {
	if *running != nil {
		return fmt.Errorf("%w: %s", ErrRunning, name)
	}
	p, err := startProcess(filepath.Join(c.o.Binaries, name), filepath.Join(c.dir, log), flags)
	if err != nil {
		return fmt.Errorf("cluster: start %s: %w", name, err)
	}
	if err := p.await(ctx, ready); err != nil {
		p.kill()
		return err
	}
	*running = p
	return nil
}

func (c *Cluster) etcdFlags() []string {
	return []string{
		"--name=default",
		"--data-dir=" + filepath.Join(c.dir, etcdData),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=" + c.peerURL,
		"--initial-advertise-peer-urls=" + c.peerURL,
		"--initial-cluster=default=" + c.peerURL,
		"--unsafe-no-fsync", // tests do not need data after a crash of the machine
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerFlags() []string {
	host, port, _ := strings.Cut(c.address, ":")
	file := func(name string) string { return filepath.Join(c.dir, name) }
	return []string{
		"--etcd-servers=" + c.etcdURL,
		"--etcd-compaction-interval=0", // only tests compact
		"--bind-address=" + host,
		"--secure-port=" + port,
		"--advertise-address=" + advertised, // endpoints must not have a loopback address
		"--cert-dir=" + c.dir,
		"--tls-cert-file=" + file(certFile),
		"--tls-private-key-file=" + file(keyFile),
		"--client-ca-file=" + file(caFile),
		"--token-auth-file=" + file(tokenFile),
		"--authorization-mode=RBAC",
		"--allow-privileged",                                                    // as with kubeadm and envtest
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local", // that of kubeadm
		"--service-account-jwks-uri=" + c.URL() + "/openid/v1/jwks",
		"--service-account-key-file=" + file(accountKey),
		"--service-account-signing-key-file=" + file(accountKey),
		"--disable-admission-plugins=ServiceAccount", // pods would need service accounts, which no controller creates here
		"--service-cluster-ip-range=10.0.0.0/24",
	}
}

// probe returns nil if the URL answers 200.
func probe(ctx context.Context, client *http.Client, url string) error {
	status, body, err := do(ctx, client, http.MethodGet, url, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d: %s", url, status, body)
	}
	return err
}
