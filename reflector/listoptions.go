package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPageSize is the limit of a page if Options.PageSize is 0.
const defaultPageSize = 500

// listOptions returns the resource version, the match, the limit and the timeout of the request. pageSize is
// Options.PageSize. The server may answer the first list from any version ("0"), because there is no version yet that
// the answer could contradict. Later lists must not be older than the version reached.
func (s state) listOptions(pageSize int64, timeout time.Duration) metav1.ListOptions {
	seconds := int64(timeout / time.Second)
	switch s.do {
	case watchList:
		yes := true
		o := metav1.ListOptions{
			SendInitialEvents:    &yes,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks:  true,
			TimeoutSeconds:       &seconds,
		}
		if s.list.need == notOlder {
			o.ResourceVersion = s.version
		}
		return o
	case page:
		if s.list.token != "" {
			return metav1.ListOptions{Continue: s.list.token, Limit: s.limit(pageSize, "")}
		}
		version := s.listVersion()
		o := metav1.ListOptions{ResourceVersion: version, Limit: s.limit(pageSize, version)}
		if s.resumable() && s.list.need == notOlder {
			// Without NotOlderThan, a limit makes the server look for exactly this version. The server may have
			// forgotten it, and it would not help if no watch from it succeeds.
			o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
		return o
	default:
		return metav1.ListOptions{ResourceVersion: s.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	}
}

// listVersion returns the resource version of the request for a first page.
func (s state) listVersion() string {
	switch {
	case s.list.need > notOlder:
		return ""
	case s.version == "":
		return "0"
	default:
		return s.version
	}
}

// limit returns the page size of a list of the given version. The default leaves a list unpaged if a watch cache can
// answer it, because kube-apiserver reads a paged list of a certain version from etcd.
func (s state) limit(pageSize int64, version string) int64 {
	switch {
	case s.list.unlimited:
		return 0
	case pageSize > 0:
		return pageSize
	case version == "" || version == "0" || s.serverPages:
		return defaultPageSize
	default:
		return 0
	}
}
