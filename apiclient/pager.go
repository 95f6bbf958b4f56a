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
)

// PageOptions are how All lists. The zero value lists everything, 500 objects a page.
type PageOptions[T any] struct {
	// Options are those of each List. Limit is the size of a page, and zero means 500; Continue starts in the middle.
	// The version that is asked for counts for the first page, and the others are of the same state.
	api.Options[T]

	// Inconsistent goes on when the state that the pages are of is forgotten in mid-list, with the token for the rest
	// of the present state that the server offers then. No object comes twice; what was created since the beginning, or
	// deleted, may be missing, or not, in the part that had been listed before. Without it such an end is an error, for
	// which apierrors.IsResourceExpired holds.
	Inconsistent bool

	// MaxWait bounds how long one page is waited for in all when the server answers 429 or 503 and says when to come
	// back (Retry-After). Zero means a minute, negative that nothing is waited for. A longer delay is not begun: the
	// answer is the error.
	MaxWait time.Duration
}

const (
	defaultPageSize = 500
	defaultMaxWait  = time.Minute
)

// All lists objects page by page, and yields each as its bytes arrive: no page is ever held. The loop's body runs while
// the answer is open, so one that is slower than a server's patience with a reader (a minute and more) wants smaller
// pages. Requests are made by the loop and end with it: leaving it closes the answer, and nothing is asked for ahead.
//
// All pages are of one state of the server. An error is the last thing that is yielded, and no object comes twice
// before it: it is that of List (see PartialClient.List), or the error of ctx, which ends the loop between any two
// objects. It corresponds to pager.EachListItem of client-go, which asks for pages ahead and holds up to ten.
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
	left  bool // the loop's body wants no more
	items int  // yielded of the page in progress
}

// errLeft ends a list whose loop was left.
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
				return err // a server that offers token after token would be asked for ever
			}
		}
		resumed = err != nil
		switch token {
		case "":
			return nil
		case o.Continue:
			return fmt.Errorf("list %s: apiclient: the token for the next page is that of the page before", p.from.Resource())
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = token, "", "" // the token says of which state
	}
}

// remainder returns the token for the rest of a list whose state is forgotten, if there is one and it is wanted.
func (p *pager[T]) remainder(err error) string {
	var status apierrors.APIStatus
	if !p.o.Inconsistent || p.items > 0 || !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// page lists one page, and comes back when the server says so. A page of which a part has been yielded is not asked for
// again.
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
		wait := asksToWait(err)
		if wait == 0 || wait > left || p.items > 0 {
			return meta, err
		}
		left -= wait
		if ended := pause(ctx, wait); ended != nil {
			return meta, fmt.Errorf("list %s: %w", p.from.Resource(), ended)
		}
	}
}

// asksToWait returns how long a server that is busy wants to be left alone, zero if it did not say so.
func asksToWait(err error) time.Duration {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	status := answer.Status()
	if status.Details == nil || status.Code != http.StatusTooManyRequests && status.Code != http.StatusServiceUnavailable {
		return 0
	}
	return max(0, time.Duration(status.Details.RetryAfterSeconds)*time.Second) // a wait below zero would be none, for ever
}
