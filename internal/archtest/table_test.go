package archtest_test

import (
	"slices"
	"strings"
)

const module = "github.com/leatproject/leat"

// everything allows a package to import all others.
const everything = "*"

// layer is a row of the table of imports. Names are paths below the module. A name that ends in /*
// means every package below it.
type layer struct {
	packages  string
	mayImport string
}

// table lists which packages a package may import, without its tests. Imports point down only.
var table = []layer{
	{". api", ""},
	{"internal/trie internal/hooks internal/quote internal/visible internal/runstate internal/sameorigin internal/graceful internal/explore", ""},
	{"internal/regularfile", "internal/quote"},
	{"codec/internal/plan", "internal/quote"},
	{"codec/internal/wireplan codec/internal/scan", "codec/internal/plan"},
	{"codec/internal/jsonplan", "codec/internal/plan codec/internal/scan"},
	{"codec", "api codec/internal/jsonplan codec/internal/plan codec/internal/scan codec/internal/wireplan internal/quote"},
	{"internal/maskguard", "codec"},
	{"apiclient/internal/secret", "internal/quote"},
	{"apiclient/internal/auth", "apiclient/internal/secret internal/regularfile"},
	{"apiclient/internal/transport", "apiclient/internal/auth apiclient/internal/secret internal/quote"},
	{"apiclient/internal/call", "apiclient/internal/auth apiclient/internal/secret apiclient/internal/transport"},
	{"apiclient", "api codec apiclient/internal/auth apiclient/internal/call apiclient/internal/secret apiclient/internal/transport internal/quote internal/regularfile"},
	{"apiclient/exec", "api apiclient internal/quote internal/regularfile internal/visible"},
	{"apiclient/discovery", "api apiclient internal/quote"},
	{"apiclient/websocket", "api apiclient codec internal/quote"},
	{"apiclient/kubeconfig", "api apiclient apiclient/exec internal/quote internal/regularfile"},
	{"webhook", "api codec internal/graceful internal/quote internal/regularfile internal/runstate"},
	{"webhook/selfsigned manager/accessreview", "api apiclient"},
	{"cache", "api internal/trie"},
	{"deltafifo", "api"},
	{"reflector", "api"},
	{"informer/internal/slowcalls", ""},
	{"informer", "api cache deltafifo reflector informer/internal/slowcalls internal/hooks internal/runstate"},
	{"informer/factory", "api informer internal/hooks internal/runstate"},
	{"scale/packed", "api codec informer"},
	{"scale/driftcheck", "api informer"},
	{"scale/warmstart", "api codec internal/regularfile"},
	{"observe/recording/internal/frame", ""},
	{"observe/recording/internal/redact", "api internal/quote"},
	{"observe/recording", "api codec internal/quote observe/recording/internal/frame observe/recording/internal/redact"},
	{"api/hashrange", ""},
	{"scale/scopes/internal/merge", "api deltafifo"},
	{"scale/scopes", "api cache deltafifo informer reflector internal/runstate scale/scopes/internal/merge"},
	{"scale/shardedsource", "api codec informer internal/quote scale/scopes api/hashrange"},
	{"scale/referenced", "api apiclient cache codec deltafifo informer reflector internal/runstate"},
	{"workqueue adapter/zapslog", ""},
	{"controller/internal/history", "workqueue"},
	{"controller predicate", "api cache controller/internal/history informer workqueue internal/hooks internal/runstate"},
	{"cachedclient", "api apiclient cache codec informer informer/factory internal/runstate"},
	{"reconcile/owner reconcile/expectations reconcile/conditions", "api"},
	{"manager/leaderelection reconcile/events", "api apiclient"},
	{"manager", "api codec apiclient cache deltafifo reflector informer workqueue controller predicate cachedclient reconcile/owner reconcile/expectations reconcile/conditions manager/leaderelection reconcile/events internal/graceful internal/quote internal/runstate internal/sameorigin"},
	{"scale/stagger", "api apiclient codec informer reflector"},
	{"scale/multicluster", "api apiclient apiclient/exec apiclient/kubeconfig controller informer informer/factory manager internal/runstate"},
	{"scale/shard", "api apiclient controller workqueue internal/runstate api/hashrange"},
	{"observe/livepage", "api workqueue informer reflector controller cachedclient manager scale/shard internal/runstate internal/sameorigin"},
	{"metrics program", everything},
	{"testserver/internal/object testserver/internal/signal internal/pipe", ""},
	{"testserver/internal/registry", "api testserver/internal/object"},
	{"testserver/internal/fieldmanager", "testserver/internal/object testserver/internal/registry"},
	{"testserver/internal/store", "api api/hashrange testserver/internal/object testserver/internal/registry testserver/internal/signal"},
	{"testserver/internal/extension", "api testserver/internal/object testserver/internal/registry testserver/internal/store"},
	{"testserver/internal/writer", "api testserver/internal/extension testserver/internal/fieldmanager testserver/internal/object testserver/internal/registry testserver/internal/store"},
	{"testserver/internal/wire", "api testserver/internal/object internal/pipe testserver/internal/registry testserver/internal/store"},
	{"testserver/faults", ""},
	{"testserver/internal/disturb", "api testserver/faults testserver/internal/object internal/pipe testserver/internal/signal testserver/internal/wire"},
	{"testserver", "api internal/sameorigin testserver/faults testserver/internal/disturb testserver/internal/extension testserver/internal/object internal/pipe testserver/internal/registry testserver/internal/store testserver/internal/wire testserver/internal/writer"},
	{"observe/recording/replay", "api observe/recording testserver"},
	{"observe/livepage/history", "api observe/livepage observe/recording"},
	{"testserver/faultplan", "testserver testserver/faults internal/quote"},
	{"testkit", "api apiclient testserver testserver/faults"},
	{"testkit/simulation", everything},
	{"docs internal/archtest", ""},
	{"internal/listerwatchertest", "api codec internal/fixture internal/pipe testserver testserver/faults"}, // for tests only
	{"internal/fixture", "api apiclient informer testserver"},                                               // for tests only
	{"internal/fixture/must", ""},                                                                           // for tests only
	{"internal/trace", "api informer"},
	{"cmd/* examples/* internal/soak internal/serve", everything},
}

// core are the packages that every agent links. They do not import modules that only some programs need.
var core = strings.Fields("api cache deltafifo reflector informer workqueue controller predicate codec apiclient")

// neverLinked must not be among the direct or indirect dependencies of the core.
var neverLinked = strings.Fields("k8s.io/client-go sigs.k8s.io/controller-runtime k8s.io/api github.com/spf13/cobra " +
	"github.com/prometheus github.com/stretchr/testify")

// confined lists the packages that may import a module, or a package of the standard library, outside tests. A module
// that is not listed may be imported by all.
var confined = []layer{
	{"k8s.io/client-go", ""},
	{"sigs.k8s.io/controller-runtime", ""},
	{"k8s.io/api", "manager/leaderelection reconcile/events scale/shard internal/listerwatchertest cmd/* examples/*"},
	{"github.com/prometheus", "metrics program cmd/* examples/*"},
	{"github.com/spf13", "cmd/* examples/*"},
	{"github.com/klauspost/compress", "observe/recording"},
	{"golang.org/x/term", "apiclient/exec"},
	{"sigs.k8s.io/yaml", "apiclient/kubeconfig testserver/faultplan testserver/internal/wire testserver/internal/writer internal/serve cmd/* examples/*"},
	{"go.yaml.in/yaml", ""},
	{"gopkg.in/yaml", ""},
	{"github.com/gorilla/websocket", "apiclient/websocket testserver/internal/wire"},
	{"gopkg.in/evanphx/json-patch", "testserver"},
	{"sigs.k8s.io/structured-merge-diff", "testserver/internal/fieldmanager testserver/internal/writer"},
	{"github.com/stretchr/testify", "internal/fixture internal/fixture/must internal/listerwatchertest"},
	{"embed", "docs testserver metrics manager observe/livepage cmd/* examples/*"},
	{"html/template", "testserver metrics manager cmd/* examples/*"},
	{"go.uber.org/zap", "apiclient apiclient/* reflector informer informer/factory scale/scopes scale/referenced scale/multicluster controller cachedclient manager/leaderelection reconcile/events scale/shard scale/shardedsource manager metrics program webhook webhook/* manager/accessreview adapter/zapslog scale/warmstart scale/driftcheck observe/recording testserver testkit cmd/* examples/*"},
}

// knowsNothingOfKubernetes are packages that are useful without Kubernetes.
var knowsNothingOfKubernetes = strings.Fields("workqueue adapter/zapslog internal/trie internal/sameorigin internal/graceful internal/regularfile " +
	"apiclient/internal/secret apiclient/internal/auth apiclient/internal/transport")

// layerOf returns the row of a package.
func layerOf(pkg string) (layer, bool) {
	for _, l := range table {
		if matches(strings.Fields(l.packages), pkg) {
			return l, true
		}
	}
	return layer{}, false
}

// matches reports whether a package matches one of the patterns: (*) matches any package, and name/* any package below
// name.
func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "/*")
		return p == everything || p == pkg || wild && strings.HasPrefix(pkg, below+"/")
	})
}

// within reports whether an import path belongs to a module, in any major version.
func within(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/") || strings.HasPrefix(path, module+".v")
}
