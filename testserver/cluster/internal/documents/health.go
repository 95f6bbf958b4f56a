package documents

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// hooks are the checks of what kube-apiserver starts, in its order.
var hooks = []string{
	"poststarthook/start-apiserver-admission-initializer",
	"poststarthook/generic-apiserver-start-informers",
	"poststarthook/priority-and-fairness-config-consumer",
	"poststarthook/priority-and-fairness-filter",
	"poststarthook/storage-object-count-tracker-hook",
	"poststarthook/start-apiextensions-informers",
	"poststarthook/start-apiextensions-controllers",
	"poststarthook/crd-informer-synced",
	"poststarthook/start-system-namespaces-controller",
	"poststarthook/peer-endpoint-reconciler-controller",
	"poststarthook/start-cluster-authentication-info-controller",
	"poststarthook/start-kube-apiserver-identity-lease-controller",
	"poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
	"poststarthook/storage-readiness",
	"poststarthook/start-legacy-token-tracking-controller",
	"poststarthook/start-service-ip-repair-controllers",
	"poststarthook/rbac/bootstrap-roles",
	"poststarthook/scheduling/bootstrap-system-priority-classes",
	"poststarthook/priority-and-fairness-config-producer",
	"poststarthook/bootstrap-controller",
	"poststarthook/start-kubernetes-service-cidr-controller",
	"poststarthook/start-kube-aggregator-informers",
	"poststarthook/apiservice-status-local-available-controller",
	"poststarthook/apiservice-status-remote-available-controller",
	"poststarthook/apiservice-registration-controller",
	"poststarthook/apiservice-discovery-controller",
	"poststarthook/kube-apiserver-autoregistration",
	"autoregister-completion",
	"poststarthook/apiservice-openapi-controller",
	"poststarthook/apiservice-openapiv3-controller",
}

// live are the checks of a server that need not be ready.
var live = slices.Concat([]string{"ping", "log", "loopback-serving-certificate", "etcd"}, hooks)

// checks are the names of the checks below each path.
var checks = map[string][]string{
	"/healthz": live,
	"/livez":   live,
	"/readyz":  slices.Concat([]string{"ping", "log", "etcd", "etcd-readiness", "informer-sync"}, hooks, []string{"shutdown"}),
}

// serveHealth answers a request for one check, or for the list of all. The server itself answers those for the sum.
func serveHealth(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	for root, names := range checks {
		name, single := strings.CutPrefix(r.URL.Path, root+"/")
		switch {
		case single && slices.Contains(names, name):
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write([]byte("ok")) // an error means that the client has gone
			return true
		case r.URL.Path == root && query.Has("verbose"):
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write([]byte(verbose(root, names, query["exclude"]))) // as above
			return true
		}
	}
	return false
}

// verbose returns the list of all checks.
func verbose(root string, names, excluded []string) string {
	var out strings.Builder
	for _, name := range names {
		if slices.Contains(excluded, name) {
			fmt.Fprintf(&out, "[+]%s excluded: ok\n", name)
			continue
		}
		fmt.Fprintf(&out, "[+]%s ok\n", name)
	}
	var unknown []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(excluded))) {
		if !slices.Contains(names, name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) > 0 {
		fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ","))
	}
	fmt.Fprintf(&out, "%s check passed\n", strings.TrimPrefix(root, "/"))
	return out.String()
}
