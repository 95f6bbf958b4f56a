package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPageSize is the limit of a page when Options do not say otherwise.
const defaultPageSize = 500

// listOptions says what s asks the server for: the versions and limits of rows 5, 6, 10, 11 and 34. pageSize is that of
// Options, 0 for the default. A server may answer a list from any version ("0") the first time, since nothing is known
// that it could contradict; later ones must not be older than what is known.
func (s state) listOptions(pageSize int64, timeout time.Duration) metav1.ListOptions {
	seconds := int64(timeout / time.Second)
	switch s.do {
	case stream:
		yes := true
		o := metav1.ListOptions{
			SendInitialEvents:    &yes,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks:  true,
			TimeoutSeconds:       &seconds,
		}
		if !s.consistent {
			o.ResourceVersion = s.version
		}
		return o
	case page:
		if s.token != "" {
			return metav1.ListOptions{Continue: s.token, Limit: s.limit(pageSize, "")}
		}
		version := s.listVersion()
		o := metav1.ListOptions{ResourceVersion: version, Limit: s.limit(pageSize, version)}
		if s.resumable() && !s.consistent {
			// With a limit a server would else take the version for the one that is wanted, which may be gone, and
			// which would not help where no watch from it succeeds.
			o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
		return o
	case probe:
		return metav1.ListOptions{Limit: 1}
	default:
		return metav1.ListOptions{ResourceVersion: s.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	}
}

func (s state) listVersion() string {
	switch {
	case s.consistent:
		return ""
	case s.version == "":
		return "0"
	default:
		return s.version
	}
}

// limit is the page size of a list of the given version. A server with a watch cache pages only what it must read from
// etcd: paging a version that the cache has would take the list away from it.
func (s state) limit(pageSize int64, version string) int64 {
	switch {
	case s.unlimited:
		return 0
	case pageSize > 0:
		return pageSize
	case version == "" || version == "0" || s.serverPages:
		return defaultPageSize
	default:
		return 0
	}
}
