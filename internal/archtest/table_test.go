package archtest_test

import (
	"slices"
	"strings"
)

const module = "github.com/leatproject/leat"

// everything allows a package to import all others.
const everything = "*"

// layer is a row of the table in section 1 of the design. Names are paths below the module; one that ends in /* stands
// for every package below it.
type layer struct {
	packages  string
	mayImport string
}

// table says which package may import which others of leat, tests aside. Imports point down only.
var table = []layer{
	{"api", ""},
	{"codec", "api"},
	{"apiclient", "api codec"},
	{"apiclient/exec apiclient/websocket apiclient/discovery", "api apiclient"},
	{"apiclient/kubeconfig", "api apiclient apiclient/exec"},
	{"internal/trie internal/hooks", ""},
	{"cache", "api internal/trie"},
	{"deltafifo", "api"},
	{"reflector", "api"},
	{"informer", "api cache deltafifo reflector internal/hooks"},
	{"await", "api apiclient cache deltafifo informer reflector"},
	{"workqueue", ""},
	{"controller predicate", "api cache informer workqueue internal/hooks"},
	{"client", "api apiclient cache informer"},
	{"owner expectations status", "api"},
	{"leaderelection recorder", "api apiclient"},
	{"manager", "api codec apiclient cache deltafifo reflector informer workqueue controller predicate client owner expectations status leaderelection recorder"},
	{"metrics", everything},
	{"testserver", "api codec"},
	{"internal/archtest", ""},
	{"internal/listerwatchertest", "api codec testserver"}, // for tests alone
	{"internal/trace", "api cache deltafifo informer"},
	{"cmd/* examples/*", everything},
}

// core is what every agent links. It stays free of what only some need.
var core = strings.Fields("api cache deltafifo reflector informer workqueue controller predicate codec apiclient")

// neverLinked must not be among the dependencies of the core, however far away.
var neverLinked = strings.Fields("k8s.io/client-go sigs.k8s.io/controller-runtime k8s.io/api github.com/spf13/cobra " +
	"github.com/prometheus github.com/stretchr/testify")

// confined says which packages may import a module, or a package of the standard library, from files that are not
// tests. What is not named here may be imported by all.
var confined = []layer{
	{"k8s.io/client-go", ""},
	{"sigs.k8s.io/controller-runtime", ""},
	{"k8s.io/api", "leaderelection recorder internal/listerwatchertest cmd/* examples/*"},
	{"github.com/prometheus", "metrics cmd/* examples/*"},
	{"github.com/spf13", "cmd/* examples/*"},
	{"golang.org/x/term", "apiclient/exec"},
	{"sigs.k8s.io/yaml", "apiclient/kubeconfig testserver cmd/* examples/*"},
	{"go.yaml.in/yaml", ""},
	{"gopkg.in/yaml", ""},
	{"github.com/gorilla/websocket", "apiclient/websocket testserver"},
	{"github.com/evanphx/json-patch", "testserver"},
	{"github.com/stretchr/testify", "internal/listerwatchertest"},
	{"embed", "testserver metrics manager cmd/* examples/*"},
	{"html/template", "testserver metrics manager cmd/* examples/*"},
	{"go.uber.org/zap", "apiclient apiclient/* reflector informer controller client leaderelection recorder manager metrics testserver cmd/* examples/*"},
}

// knowsNothingOfKubernetes are packages that are of use without it.
var knowsNothingOfKubernetes = strings.Fields("workqueue internal/trie")

// layerOf returns the row of a package.
func layerOf(pkg string) (layer, bool) {
	for _, l := range table {
		if matches(strings.Fields(l.packages), pkg) {
			return l, true
		}
	}
	return layer{}, false
}

// matches tells whether a package is one of the patterns. (*) matches any, and name/* what is below name.
func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "/*")
		return p == everything || p == pkg || wild && strings.HasPrefix(pkg, below+"/")
	})
}

// within tells whether an import path is a module or a package of it, whatever its major version.
func within(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/") || strings.HasPrefix(path, module+".v")
}
