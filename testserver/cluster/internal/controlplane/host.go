package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

// host is the cluster of an etcd. API servers come and go, and the cluster stays.
type host struct {
	folder string // of the state
	quota  int    // of the objects in bytes; zero means no limit

	turn sync.Mutex // held while an API server starts

	mu           sync.Mutex // guards the fields below
	cluster      *cluster.Cluster
	settings     front.Settings
	gates        *string                     // that are set; nil before the first cluster
	certificates map[string]*tls.Certificate // by the address of the listener
	gone         chan struct{}               // closed and replaced when an API server has ended
}

func newHost(folder string, quota int) *host {
	return &host{folder: folder, quota: quota, certificates: map[string]*tls.Certificate{}, gone: make(chan struct{})}
}

// start makes the cluster of a request and listens for it. The cluster continues if the settings are the same.
// Otherwise a new cluster gets the objects, with newer versions.
func (h *host) start(r *front.Request) (serve func(context.Context) error, err error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	pair, err := tls.X509KeyPair(r.Certificate, r.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	late := time.After(front.LeaveTime)
	for {
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		var l net.Listener
		if err = h.prepare(r.Cluster); err == nil {
			if l, err = net.Listen("tcp", r.Address); err == nil {
				return h.serving(l, &pair), nil
			}
			err = fmt.Errorf("failed to create listener: failed to listen on %s: %w", r.Address, err)
		}
		if wrong := (*settingsError)(nil); errors.As(err, &wrong) {
			return nil, err
		}
		select {
		case <-gone:
		case <-late:
			return nil, err
		}
	}
}

// settingsError is an error that does not pass when another API server ends.
type settingsError struct{ error }

// prepare makes the cluster.
func (h *host) prepare(s front.Settings) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster != nil {
		differences := h.settings.Differences(s)
		if len(differences) == 0 {
			return nil
		}
		if len(h.certificates) > 0 {
			return fmt.Errorf("another kube-apiserver uses this etcd with other values of %s; they can share it only with the same ones",
				strings.Join(differences, ", "))
		}
	}
	next, err := h.newCluster(s)
	if err != nil {
		return &settingsError{err}
	}
	h.cluster, h.settings = next, s
	return nil
}

// newCluster returns a cluster with the objects of the last one, or with those of the file. It sets the feature gates
// of the process after everything that it can check without them.
func (h *host) newCluster(s front.Settings) (*cluster.Cluster, error) {
	if h.gates != nil && *h.gates != s.Gates {
		if err := parseGates(utilfeature.DefaultMutableFeatureGate.DeepCopy(), s.Gates); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("restart etcd to change --feature-gates from %q to %q", *h.gates, s.Gates)
	}
	options, err := clusterOptions(s, testserver.Options{
		Certificate: h.certificate, Seed: uint64(time.Now().UnixNano()), MaxBytes: h.quota,
	})
	if err != nil {
		return nil, err
	}
	var state []byte
	if h.cluster != nil {
		state = h.cluster.Server.Dump()
	} else if state, err = os.ReadFile(h.file()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := setGates(s.Gates, &options.Server); err != nil {
		return nil, err
	}
	h.gates = &s.Gates
	next, err := cluster.New(options)
	if err == nil && state != nil {
		if err = next.Server.Load(state); err != nil {
			err = fmt.Errorf("load %s: %w", h.file(), err)
		}
	}
	return next, err
}

// serving returns a function that serves the cluster on a listener.
func (h *host) serving(l net.Listener, pair *tls.Certificate) func(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	served, address := h.cluster, l.Addr().String()
	h.certificates[address] = pair
	return func(ctx context.Context) error {
		err := served.Serve(ctx, l)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.certificates, address)
		close(h.gone)
		h.gone = make(chan struct{})
		return err
	}
}

// certificate returns the certificate of the listener that accepted a connection.
func (h *host) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	local := hello.Conn.LocalAddr().String()
	port := portOf(local)
	h.mu.Lock()
	defer h.mu.Unlock()
	if pair := h.certificates[local]; pair != nil {
		return pair, nil
	}
	for address, pair := range h.certificates {
		if portOf(address) == port {
			return pair, nil
		}
	}
	return nil, nil
}

// portOf returns the port of an address. A listener on all addresses has no host.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// file is the file with the state.
func (h *host) file() string { return filepath.Join(h.folder, "leat-server.json") }

// save writes the state, if there was an API server. The file appears whole, and only its owner can read it, because
// it contains Secrets.
func (h *host) save() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster == nil {
		return nil
	}
	part := h.file() + ".part"
	err := os.WriteFile(part, h.cluster.Server.Dump(), 0o600)
	if err == nil {
		err = os.Rename(part, h.file())
	}
	if err != nil {
		_ = os.Remove(part) // the other error says more
	}
	return err
}
