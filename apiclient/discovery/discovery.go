package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// ErrUnknownResource matches every *UnknownResourceError.
var ErrUnknownResource = errors.New("discovery: unknown resource")

// UnknownResourceError is a name that no document of the server has. Where some documents could not be read the resource
// may be in one of those, and the error wraps what was wrong with them.
type UnknownResourceError struct {
	Name   string
	Failed []error
}

// Error names the resource, and counts the documents that could not be read.
func (e *UnknownResourceError) Error() string {
	s := fmt.Sprintf("unknown resource %q", e.Name)
	if len(e.Failed) > 0 {
		s += fmt.Sprintf(" (documents that could not be read: %d; the first: %v)", len(e.Failed), e.Failed[0])
	}
	return s
}

// Is matches ErrUnknownResource.
func (e *UnknownResourceError) Is(target error) bool { return target == ErrUnknownResource }

// Unwrap returns what was wrong with the documents that could not be read.
func (e *UnknownResourceError) Unwrap() []error { return e.Failed }

// Lookup finds a resource by its plural name: "pods", "deployments.apps", or with a version "deployments.v1.apps" and
// "pods.v1". Without a group the core group is looked at first, then the others in the order in which the server lists
// them, and the first that has the name wins, as in kubectl; without a version a group's preferred one is looked at
// first, then its others in order. Subresources are no resources. Case does not matter.
//
// It reads /api, /apis and as many of the groups' documents as it needs, each with one request, and keeps nothing. A
// document that the server cannot give is passed over; where no other has the name, the error is an
// *UnknownResourceError. A server that refuses or cannot be reached is an error of its own.
// It corresponds to asking a RESTMapper of client-go for one mapping; singular and short names, kinds and a cache that
// several look-ups share belong to a mapper, which has its place beside this function.
func Lookup(ctx context.Context, c *apiclient.Client, resource string) (api.Resource, error) {
	wanted, err := readings(strings.ToLower(resource))
	if err != nil {
		return api.Resource{}, err
	}
	l := lookup{client: c}
	for _, n := range wanted {
		found, ok, err := l.find(ctx, n)
		if err != nil {
			return api.Resource{}, fmt.Errorf("look up %s: %w", resource, err)
		}
		if ok {
			return found, nil
		}
	}
	return api.Resource{}, &UnknownResourceError{Name: resource, Failed: l.failed}
}

// lookup is one call of Lookup.
type lookup struct {
	client *apiclient.Client
	failed []error // documents that were passed over
}

func (l *lookup) find(ctx context.Context, n name) (api.Resource, bool, error) {
	if n.version != "" {
		return l.inVersions(ctx, n, schema.GroupVersion{Group: n.group, Version: n.version})
	}
	if n.anyGroup {
		return l.inAnyGroup(ctx, n)
	}
	var group metav1.APIGroup
	ok, err := l.read(ctx, "/apis/"+n.group, &group)
	if !ok || err != nil {
		return api.Resource{}, false, err
	}
	return l.inVersions(ctx, n, versions(group)...)
}

// inAnyGroup looks at the core group, then at the others.
func (l *lookup) inAnyGroup(ctx context.Context, n name) (api.Resource, bool, error) {
	var core metav1.APIVersions
	if err := l.client.GetDocument(ctx, "/api", &core); err != nil && !apierrors.IsNotFound(err) {
		return api.Resource{}, false, err
	}
	for _, v := range core.Versions {
		if found, ok, err := l.inVersions(ctx, n, schema.GroupVersion{Version: v}); ok || err != nil {
			return found, ok, err
		}
	}
	var groups metav1.APIGroupList
	if err := l.client.GetDocument(ctx, "/apis", &groups); err != nil {
		return api.Resource{}, false, err
	}
	for _, g := range groups.Groups {
		if found, ok, err := l.inVersions(ctx, n, versions(g)...); ok || err != nil {
			return found, ok, err
		}
	}
	return api.Resource{}, false, nil
}

// versions returns those of a group, the preferred one first.
func versions(g metav1.APIGroup) []schema.GroupVersion {
	preferred := schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version}
	var all []schema.GroupVersion
	if preferred.Version != "" {
		all = append(all, preferred)
	}
	for _, v := range g.Versions {
		if gv := (schema.GroupVersion{Group: g.Name, Version: v.Version}); gv != preferred {
			all = append(all, gv)
		}
	}
	return all
}

// inVersions looks at the documents of versions until one has the name.
func (l *lookup) inVersions(ctx context.Context, n name, all ...schema.GroupVersion) (api.Resource, bool, error) {
	for _, gv := range all {
		path := "/apis/" + gv.Group + "/" + gv.Version
		if gv.Group == "" {
			path = "/api/" + gv.Version
		}
		var list metav1.APIResourceList
		ok, err := l.read(ctx, path, &list)
		if err != nil {
			return api.Resource{}, false, err
		}
		if !ok {
			continue
		}
		for _, r := range list.APIResources {
			if r.Name == n.plural {
				return api.Resource{Group: gv.Group, Version: gv.Version, Kind: r.Kind, Plural: r.Name, Namespaced: r.Namespaced}, true, nil
			}
		}
	}
	return api.Resource{}, false, nil
}

// read reads a document. One that the server says it cannot give is passed over, as an aggregated API whose own server is
// down must not hide all others; a server that does not answer is an error.
func (l *lookup) read(ctx context.Context, path string, into any) (bool, error) {
	err := l.client.GetDocument(ctx, path, into)
	if err == nil {
		return true, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		return false, err
	}
	if !apierrors.IsNotFound(err) {
		l.failed = append(l.failed, err)
	}
	return false, nil
}
