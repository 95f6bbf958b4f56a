package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/quote"
)

// root is the last state of /api or /apis, with all documents below it.
type root struct {
	path   string
	etag   string // of an aggregated document; otherwise empty
	groups []*group
	err    *DocumentError // the root cannot be read; the groups are older
}

// fetch is one read of all documents.
type fetch struct {
	client *apiclient.Client
	known  *catalog // nil for the first read
}

// all reads /api and /apis. One of them may be missing, if the server has no core group or only the core group, and one
// may be forbidden. If both fail, the result is an error.
func (f fetch) all(ctx context.Context) (*catalog, error) {
	core, coreErr := f.root(ctx, "/api")
	if core == nil && !isOptional(coreErr) {
		return nil, coreErr
	}
	others, err := f.root(ctx, "/apis")
	switch {
	case others == nil && !isOptional(err):
		return nil, err
	case core == nil && others == nil && apierrors.IsForbidden(coreErr):
		return nil, coreErr
	case core == nil && others == nil:
		return nil, err
	case core == nil:
		core = f.emptyRoot("/api", coreErr)
	case others == nil:
		others = f.emptyRoot("/apis", err)
	}
	c := newCatalog(core, others)
	if len(c.resources) == 0 && len(c.failed) == 0 {
		return nil, documentError(others.path, malformed(others.path, errors.New("it lists no resource, and /api lists none either")))
	}
	return c, nil
}

// isOptional reports whether the other root can be used although this one cannot be read.
func isOptional(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// emptyRoot returns a root that the server does not have or does not show.
func (f fetch) emptyRoot(path string, err error) *root {
	r := &root{path: path}
	if apierrors.IsNotFound(err) {
		return r
	}
	errors.As(err, &r.err)
	if known := f.known.root(path); known != nil {
		r.groups = known.groups
	}
	return r
}

// root reads /api or /apis and all documents below it. Its errors are *DocumentErrors or those of the context.
func (f fetch) root(ctx context.Context, path string) (*root, error) {
	known := f.known.root(path)
	d, err := f.document(ctx, path, known)
	if err != nil {
		return nil, documentError(path, err)
	}
	if d.NotModified {
		return known, nil
	}
	groups, aggregated, err := parse(path, d)
	if err != nil {
		return nil, documentError(path, err)
	}
	r := &root{path: path, groups: groups}
	if aggregated {
		r.etag = d.ETag
	} else if err := f.versions(ctx, groups); err != nil {
		return nil, err
	}
	f.known.keepKnown(groups)
	return r, nil
}

// document requests a root. If the server, or a proxy, does not understand the Accept header with several choices, it
// requests the root again with one.
func (f fetch) document(ctx context.Context, path string, known *root) (apiclient.Document, error) {
	o := apiclient.DocumentOptions{Accept: acceptAggregated}
	if known != nil {
		o.ETag = known.etag
	}
	d, err := f.client.FetchDocument(ctx, path, o)
	if apierrors.IsNotAcceptable(err) || apierrors.IsNotFound(err) {
		return f.client.FetchDocument(ctx, path, apiclient.DocumentOptions{})
	}
	return d, err
}

func parse(path string, d apiclient.Document) (groups []*group, aggregated bool, err error) {
	var head struct{ Kind string }
	if err := json.Unmarshal(d.Body, &head); err != nil {
		return nil, false, malformed(path, quote.JSON(err))
	}
	switch {
	case isAggregated(d.ContentType, head.Kind):
		groups, err = aggregatedGroups(path, d.Body)
		return groups, true, err
	case path == "/api":
		groups, err = coreVersions(path, d.Body)
	default:
		groups, err = otherGroups(path, d.Body)
	}
	return groups, false, err
}

// versions reads the documents of versions, one after the other. A failure is recorded in the version, because an
// aggregated API without its server must not hide the other APIs. If the server does not answer at all, or refuses the
// credentials, the result is an error.
func (f fetch) versions(ctx context.Context, groups []*group) error {
	for _, g := range groups {
		for _, v := range g.versions {
			d, err := f.client.FetchDocument(ctx, v.path(), apiclient.DocumentOptions{})
			if err == nil {
				err = v.read(d.Body)
			}
			switch {
			case err == nil, apierrors.IsNotFound(err): // the version was removed after its group was listed
			case !isAnswer(err):
				return documentError(v.path(), err)
			default:
				v.err = &DocumentError{Path: v.path(), GroupVersion: v.GroupVersion, Err: err}
			}
		}
	}
	return nil
}

// isAnswer reports whether an error concerns only one document, and not the user or the connection.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	var contentType *apiclient.ContentTypeError
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err) || errors.As(err, &contentType) ||
		errors.Is(err, ErrMalformed) || errors.Is(err, io.ErrUnexpectedEOF)
}

func documentError(path string, err error) error {
	return &DocumentError{Path: path, Err: err}
}
