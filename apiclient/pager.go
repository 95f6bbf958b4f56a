package apiclient

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/internal/call"
)

// PageOptions are the options of All. The zero value lists everything, in pages of 500 objects.
type PageOptions[T any] struct {
	// Options are those of each List. Limit is the size of a page; zero means 500. Continue begins in the middle of a
	// list. The resource version is sent with the first page only; later pages are of the same state.
	api.Options[T]

	// Inconsistent continues after the server has removed the state of the list, with the token that the server returns
	// for the rest of the current state. No object is listed twice. Objects before this point that were created or
	// deleted since the first page may be missing, or may still be listed. If Inconsistent is false, this is an error
	// for which apierrors.IsResourceExpired is true.
	Inconsistent bool

	// MaxWait bounds the total wait for one page if the server answers 429 or 503 with Retry-After. Zero means a
	// minute; negative means no wait. If the server wants a longer delay, All returns the answer as the error at once.
	MaxWait time.Duration
}

const (
	defaultPageSize = 500
	defaultMaxWait  = time.Minute
)

// All lists objects page by page and yields each object when its bytes have arrived. It never holds a page. The loop's
// body runs while the answer is open. If it is slower than the server's time limit for a reader, which is a minute or
// more, use smaller pages. The loop sends the requests: a break closes the answer, and no page is requested in advance.
//
// All pages are of one state of the server. An error is the last value, and no object comes twice before it. It is the
// error of List (see PartialClient.List) or the error of ctx, which ends the loop between two objects. It corresponds
// to pager.EachListItem of client-go, which requests pages in advance and holds up to ten.
func All[T any](ctx context.Context, from api.ListerWatcher[T], o PageOptions[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		p := pager[T]{from: from, o: o, yield: yield}
		if err := p.run(ctx); err != nil && !p.left {
			var none T
			yield(none, err)
		}
	}
}

// pager is one loop over all objects.
type pager[T any] struct {
	from  api.ListerWatcher[T]
	o     PageOptions[T]
	yield func(T, error) bool
	left  bool // the loop ended with a break
	items int  // objects of the current page that were yielded
}

// errLeft ends a list after a break of the loop.
var errLeft = errors.New("apiclient: the loop was left")

func (p *pager[T]) run(ctx context.Context) error {
	o := p.o.Options
	if o.Limit <= 0 {
		o.Limit = defaultPageSize
	}
	for resumed := false; ; {
		meta, err := p.page(ctx, o)
		token := meta.Continue
		if err != nil {
			if token = p.remainder(err); token == "" || resumed {
				return err // otherwise a server that returns more and more tokens would keep the loop running forever
			}
		}
		resumed = err != nil
		switch token {
		case "":
			return nil
		case o.Continue:
			return fmt.Errorf("list %s: apiclient: the server returned the same token for the next page again", p.from.Collection().Resource)
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = token, "", "" // the token names the state
	}
}

// remainder returns the token for the rest of a list whose state the server has removed. It is empty if there is no
// token, or if Inconsistent is false.
func (p *pager[T]) remainder(err error) string {
	var status apierrors.APIStatus
	if !p.o.Inconsistent || p.items > 0 || !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// page lists one page. It waits and repeats the request if the server wants it. A page of which some objects have been
// yielded is not requested again.
func (p *pager[T]) page(ctx context.Context, o api.Options[T]) (metav1.ListMeta, error) {
	left := p.o.MaxWait
	if left == 0 {
		left = defaultMaxWait
	}
	for {
		p.items = 0
		meta, err := p.from.List(ctx, o, func(object T) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.items++
			if p.left = !p.yield(object, nil); p.left {
				return errLeft
			}
			return nil
		})
		wait := requestedWait(err)
		if wait == 0 || wait > left || p.items > 0 {
			return meta, err
		}
		left -= wait
		if ended := call.Wait(ctx, wait); ended != nil {
			return meta, fmt.Errorf("list %s: %w", p.from.Collection().Resource, ended)
		}
	}
}

// requestedWait returns the delay that a busy server requests; zero if it requests no delay. A negative delay counts as
// zero, because it would repeat the request without a wait.
func requestedWait(err error) time.Duration {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	status := answer.Status()
	if status.Details == nil || status.Code != http.StatusTooManyRequests && status.Code != http.StatusServiceUnavailable {
		return 0
	}
	return max(0, time.Duration(status.Details.RetryAfterSeconds)*time.Second)
}
