package shardedsource

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/quote"
)

// These are the values of informer.ShardStatus.By.
const (
	// Undecided means that no answer has shown yet whether the server obeys, because there are no objects. The client
	// drops objects then.
	Undecided = "undecided"
	// Server means that the server sends only the objects of the shard.
	Server = "server"
	// Client means that the server sends all objects.
	Client = "client"
)

var (
	errIgnored  = errors.New("the server ignores the shardSelector; kube-apiserver needs the feature gate ShardedListAndWatch")
	errRefused  = errors.New("the server refuses the shardSelector")
	errUnlisted = errors.New("no list shows whether the server obeys the shardSelector")
)

// pause is the time until a server that refused or garbled the shardSelector gets it again. In a control plane of
// several servers, some of which obey, it bounds how often objects are listed again. It is also the time between two
// questions of watches that resume, and between two equal entries in the log.
const pause = 10 * time.Minute

// decision says whether the server obeys the shardSelector.
type decision struct {
	field       hashrange.Field
	byNamespace bool // the field is the namespace
	hashes      hashrange.Set
	text        string // the shardSelector
	report      *report
	dropped     atomic.Uint64
	whole       bool        // the set has all hashes
	asked       atomic.Bool // decide has run

	mu    sync.Mutex // guards the fields below
	now   informer.ShardStatus
	says  bool      // the server sends a shardInfo with lists
	until time.Time // the server does not get the shardSelector before
	next  time.Time // a watch that resumes does not ask the server before
}

// nothing is a range of one hash, which no object has.
var nothing = hashrange.NewSet(hashrange.Range{To: 1})

func newDecision(field hashrange.Field, hashes hashrange.Set, r *report) *decision {
	text := hashes.Selector(field)
	return &decision{
		field: field, byNamespace: field == hashrange.Namespace, hashes: hashes, text: text, report: r,
		whole: hashes.Equal(hashrange.All()), now: informer.ShardStatus{By: Undecided},
	}
}

// report logs what the server does. The sources of one Scopes share it, so that an entry does not come again for each
// range.
type report struct {
	log *zap.Logger

	mu   sync.Mutex           // guards the field below
	said map[string]time.Time // the entries of the last pause
}

func newReport(log *zap.Logger, r api.Resource) *report {
	if log == nil {
		log = zap.NewNop()
	}
	return &report{log: log.With(zap.Stringer("resource", r)), said: map[string]time.Time{}}
}

// tell logs what the server does, unless it has said so within the pause. In a control plane of several servers, some
// of which obey, each answer may differ.
func (r *report) tell(by string, reason error, hashes hashrange.Set) {
	text := by
	if reason != nil {
		text += ": " + reason.Error()
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.said, func(_ string, at time.Time) bool { return now.Sub(at) >= pause })
	if _, recently := r.said[text]; recently {
		return
	}
	r.said[text] = now
	log := r.log.With(zap.Stringer("shard", hashes))
	switch by {
	case Server:
		log.Info("the server sends only the objects of the shard")
	case Client:
		log.Warn("the server sends the objects of all shards; dropping those of the others", zap.NamedError("err", reason))
	}
}

func (d *decision) selects(namespace string, uid types.UID) bool {
	if d.byNamespace {
		return d.hashes.Contains(hashrange.Hash(namespace))
	}
	return d.hashes.Contains(hashrange.Hash(uid))
}

func (d *decision) selectsBytes(namespace, uid []byte) bool {
	if d.byNamespace {
		return d.hashes.Contains(hashrange.Hash(namespace))
	}
	return d.hashes.Contains(hashrange.Hash(uid))
}

// ask reports whether the server may get the shardSelector, so that decide asks it now.
func (d *decision) ask() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Before(d.until) {
		return false
	}
	d.next = now.Add(pause)
	return true
}

// due reports whether a watch that resumes must ask the server: it does not cut, and the last question is old.
func (d *decision) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	return d.now.By != Server && !now.Before(d.until) && !now.Before(d.next)
}

// trusts reports whether the server cuts.
func (d *decision) trusts() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.By == Server
}

func (d *decision) status() informer.ShardStatus {
	if d.whole {
		return informer.ShardStatus{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.now
	s.Dropped = d.dropped.Load()
	return s
}

// verify returns an error if the shardInfo of a list is not that of want. Lists of custom resources and of metadata
// have no shardInfo, but a server that has sent one with one list sends one with each.
func (d *decision) verify(info *metav1.ShardInfo, want hashrange.Set) error {
	if info == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.says {
			return fmt.Errorf("%w: a list has no shardInfo", ErrGarbled)
		}
		return nil
	}
	switch obeyed, err := hashrange.ParseSelector(info.Selector); {
	case err != nil:
		return fmt.Errorf("%w: its shardInfo is %q", ErrGarbled, quote.Short(info.Selector, maxQuoted))
	case obeyed.Field != d.field || !obeyed.Set().Equal(want):
		return fmt.Errorf("%w: its shardInfo has other ranges: %s", ErrGarbled, quote.Short(info.Selector, maxQuoted))
	}
	return nil
}

const maxQuoted = 128

// distrust makes the client cut for a while, without the shardSelector.
func (d *decision) distrust(reason error) {
	d.mu.Lock()
	d.until = time.Now().Add(pause)
	d.mu.Unlock()
	d.set(Client, reason, false)
}

// set notes who cuts, and logs it if it has changed. says means that the server sends a shardInfo.
func (d *decision) set(by string, reason error, says bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.says = says
	same := d.now.By == by && (reason == nil || d.now.Reason != nil && d.now.Reason.Error() == reason.Error())
	if same {
		return
	}
	d.now.By, d.now.Since, d.now.Reason = by, time.Now(), reason
	d.report.tell(by, reason, d.hashes)
}
