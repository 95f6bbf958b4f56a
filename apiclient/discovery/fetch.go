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

// root is /api or /apis as it was last read, with all that is below it.
type root struct {
	path   string
	etag   string // of an aggregated document; "" for others
	groups []*group
	err    *DocumentError // it cannot be read; the groups are of an earlier time
}

// fetch is one reading of everything.
type fetch struct {
	client *apiclient.Client
	known  *catalog // nil for the first time
}

// all reads /api and /apis. One of them may be missing, which is a server without the core group, or with nothing else,
// and one may be refused: both is an error.
func (f fetch) all(ctx context.Context) (*catalog, error) {
	core, coreErr := f.root(ctx, "/api")
	if core == nil && !passable(coreErr) {
		return nil, coreErr
	}
	others, err := f.root(ctx, "/apis")
	switch {
	case others == nil && !passable(err):
		return nil, err
	case core == nil && others == nil && apierrors.IsForbidden(coreErr):
		return nil, coreErr
	case core == nil && others == nil:
		return nil, err
	case core == nil:
		core = f.without("/api", coreErr)
	case others == nil:
		others = f.without("/apis", err)
	}
	c := newCatalog(core, others)
	if len(c.resources) == 0 && len(c.failed) == 0 {
		return nil, documentError(others.path, malformed(others.path, errors.New("neither it nor /api lists any resource")))
	}
	return c, nil
}

// passable tells whether a root that cannot be read leaves the other of use.
func passable(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// without is a root that the server does not have, or does not show.
func (f fetch) without(path string, err error) *root {
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

// root reads /api or /apis and all that is below it. Its errors are *DocumentErrors, or those of the context.
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
	f.known.lend(groups)
	return r, nil
}

// document asks for a root, and once more without any choice if the server, or a proxy before it, does not understand
// that there is one.
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

// versions reads the documents of versions, one after the other. One that cannot be read is noted, as an aggregated API
// whose own server is down must not hide all others; a server that does not answer at all is an error, as is one that
// does not know the user any more.
func (f fetch) versions(ctx context.Context, groups []*group) error {
	for _, g := range groups {
		for _, v := range g.versions {
			d, err := f.client.FetchDocument(ctx, v.path(), apiclient.DocumentOptions{})
			if err == nil {
				err = v.read(d.Body)
			}
			switch {
			case err == nil, apierrors.IsNotFound(err): // it went since its group was listed
			case !isAnswer(err):
				return documentError(v.path(), err)
			default:
				v.err = &DocumentError{Path: v.path(), GroupVersion: v.GroupVersion, Err: err}
			}
		}
	}
	return nil
}

// isAnswer tells whether an error is what a server said of one document, and not of the user or of the connection.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	var contentType *apiclient.ContentTypeError
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err) || errors.As(err, &contentType) ||
		errors.Is(err, ErrMalformed) || errors.Is(err, io.ErrUnexpectedEOF)
}

func documentError(path string, err error) error {
	return &DocumentError{Path: path, Err: err}
}
