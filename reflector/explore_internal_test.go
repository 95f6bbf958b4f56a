//go:build !race

// The player looks at the state of the reflector between two steps. The time of the bubble orders them, and not a lock,
// so the race detector would report them.

package reflector

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/explore"
)

const (
	maxNames  = 3
	maxWrites = 6
	maxItems  = 14
)

// moment is a version in one life of the server: each restore begins another life, which counts through the same
// versions with other content. Zero means no moment.
type moment uint8

func momentOf(life, version int) moment { return moment(life<<4 | version) }
func (m moment) version() int           { return int(m & 15) }
func (m moment) life() int              { return int(m >> 4) }

// known is a state of an object: when it was created and when it was written.
type known struct{ born, at moment }

type objects [maxNames]known

// etcd is the server's history. The write i has the version i+1.
type etcd struct {
	log       [maxWrites]struct{ name, born, at moment } // born is zero in a deletion
	version   int
	compacted int
	life      int
}

// objects returns the state at a version.
func (e *etcd) objects(version int) (all objects) {
	for _, w := range e.log[:version] {
		all[w.name] = known{w.born, w.at}
		if w.born == 0 {
			all[w.name] = known{}
		}
	}
	return all
}

func (e *etcd) write(name int, born moment) {
	e.log[e.version].name, e.log[e.version].born = moment(name), born
	e.version++
	e.log[e.version-1].at = momentOf(e.life, e.version)
}

// lineage returns the moment of a version in the present history.
func (e *etcd) lineage(version int) moment { return e.log[version-1].at }

// act is what happens in a request.
type act uint8

const (
	pause act = iota
	object
	change
	deletion
	bookmark
	endOfList // the bookmark at the end of an initial state
	endOfPage
	sleep
	missing // somebody calls Relist
	end
)

// item is a part of what happens in a request. It contains everything that the client gets, so that a request can be
// repeated from its beginning.
type item struct {
	act     act
	outcome outcome // of an end, and of probes in a sleep
	name    uint8   // of an object, and the first name of the next page
	state   known   // of an object
	at      moment  // of an event, a list or a probe
	time    time.Duration
}

// sight is a state of the world: the server, the client before its request in progress, and the request so far.
type sight struct {
	etcd
	opaque, noWatchList, paged bool
	faults                     int // that may still happen
	mostNames, mostWrites      int

	s       state // its times are relative to noon, which is now
	wait    time.Duration
	store   objects
	staged  objects // the pages so far
	listAt  moment  // the version of the first page
	script  [maxItems]item
	items   int
	open    bool // a watch is open
	restore ghost
	books   books

	// The view of the client in an open watch. Between requests, it equals the fields above.
	viewStore   objects
	viewVersion string
	viewConfirm confirmation
	viewLasted  time.Duration
	viewUp      time.Duration
	trustUp     time.Duration // the same when the version was last confirmed

	variant variant
	wrong   string
	last    string
}

// variant is a rule of the reflector that a test breaks.
type variant uint8

const (
	_ variant = iota
	forgetsDoubt
	neverRelists
	keepsKnown
)

// ghost is what the checks know of a restore, and the client does not.
type ghost struct {
	up      time.Duration // for how long the server has answered since the last restore
	asked   bool          // a probe was answered with a version before the client's
	excused bool          // the server had counted past the client's version before anything could show the restore
}

func (w *sight) name(m moment) string {
	if w.opaque {
		return fmt.Sprintf("v%d.%d", m.life(), m.version())
	}
	return strconv.Itoa(m.version())
}

// at returns the moment of a version string, as the server reads it.
func (w *sight) at(version string) moment {
	if !w.opaque {
		n, _ := strconv.Atoi(version)
		return momentOf(0, n)
	}
	life, n, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	a, _ := strconv.Atoi(life)
	b, _ := strconv.Atoi(n)
	return momentOf(a, b)
}

// has reports whether the server has a version, and whether it is a later one.
func (w *sight) has(m moment) (has, later bool) {
	if m.version() > w.version {
		return false, !w.opaque
	}
	return !w.opaque || m.version() == 0 || w.lineage(m.version()) == m, false
}

// sample is an object. Its content differs in each life of the server.
type sample struct {
	name, version string
	uid           types.UID
	content       moment
	key           known
}

func (*sample) GetNamespace() string         { return "" }
func (s *sample) GetName() string            { return s.name }
func (s *sample) GetUID() types.UID          { return s.uid }
func (s *sample) GetResourceVersion() string { return s.version }

var sampleNames = [maxNames]string{"a", "b", "c"}

func (w *sight) sample(name uint8, k known) *sample {
	return &sample{
		name: sampleNames[name], version: w.name(k.at), content: k.at, key: k,
		uid: types.UID(strconv.Itoa(int(k.born))),
	}
}

var samples = api.Resource{Version: "v1", Kind: "Sample", Plural: "samples"}

var errorOf = [...]error{
	expired:     apierrors.NewResourceExpired("the version is too old"),
	tooLarge:    apierrors.NewTimeoutError("Too large resource version", 0),
	unreachable: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	busy:        apierrors.NewTooManyRequests("busy", int(retryAfterBusy/time.Second)),
	rejected:    apierrors.NewBadRequest("refused"),
	noWatchList: api.ErrNoWatchList,
	broken:      io.ErrUnexpectedEOF,
}

// errOpen ends a request that is repeated later.
var errOpen = errors.New("the request is still open")

// player is a ListerWatcher that plays the script of a sight.
type player struct {
	w     *sight
	r     *Reflector[*sample]
	q     *deltafifo.DeltaFIFO[*sample]
	s     *state
	probe item      // the answer of a probe
	trust time.Time // when something confirmed the version first
	open  bool      // the script ended without an end
	asked bool
	lost  time.Duration // the time without a connection
	// probes is the number of probes in the last sleep.
	probes int
}

func (p *player) Collection() api.Collection { return api.Collection{Resource: samples} }

func (p *player) List(ctx context.Context, o api.Options[*sample], each func(*sample) error) (meta metav1.ListMeta, err error) {
	if o.Keep != nil {
		return p.answerProbe(ctx)
	}
	for _, i := range p.w.script[:p.w.items] {
		switch i.act {
		case object:
			if err := each(p.decode(o, i)); err != nil {
				return meta, err
			}
		case endOfPage:
			meta.ResourceVersion = p.w.name(i.at)
			if i.name > 0 {
				meta.Continue = string([]byte{'t', byte(i.at), i.name})
			}
		case end:
			if i.outcome == deadline {
				<-ctx.Done()
				return meta, ctx.Err()
			}
			return meta, errorOf[i.outcome]
		}
	}
	return meta, nil
}

func (p *player) answerProbe(ctx context.Context) (meta metav1.ListMeta, err error) {
	p.probes++
	switch p.probe.outcome {
	case deadline:
		<-ctx.Done()
		return meta, ctx.Err()
	case done:
		version := p.w.name(p.probe.at)
		reached, _ := p.r.status.signs()
		p.asked = p.asked || older(version, reached)
		if p.trust.IsZero() {
			p.trust = time.Now()
		}
		return metav1.ListMeta{ResourceVersion: version}, nil
	}
	return meta, errorOf[p.probe.outcome]
}

// decode returns the known object of the same version, as codec does.
func (p *player) decode(o api.Options[*sample], i item) *sample {
	decoded := p.w.sample(i.name, i.state)
	if p.w.variant == keepsKnown {
		o.Known = p.q.Lookup
	}
	if o.Known != nil {
		if known, ok := o.Known(nil, []byte(decoded.name)); ok && api.SameVersion(known, decoded) {
			return known
		}
	}
	return decoded
}

func (p *player) Watch(ctx context.Context, o api.Options[*sample]) iter.Seq2[api.Event[*sample], error] {
	return func(yield func(api.Event[*sample], error) bool) {
		for _, i := range p.w.script[:p.w.items] {
			e := api.Event[*sample]{ResourceVersion: p.w.name(i.at)}
			switch i.act {
			case object:
				e.Type = apiwatch.Added
			case change:
				e.Type = apiwatch.Modified
				if i.state.born == i.state.at {
					e.Type = apiwatch.Added
				}
			case deletion:
				e.Type = apiwatch.Deleted
			case bookmark, endOfList:
				e.Type, e.InitialEventsEnd = apiwatch.Bookmark, i.act == endOfList
			case sleep:
				p.probe, p.probes = i, 0
				p.pass(ctx, i.time)
			case missing:
				p.r.Relist()
			case end:
				if i.outcome == deadline {
					p.probe = item{at: i.at}
					<-ctx.Done()
				} else if i.outcome != done {
					yield(e, errorOf[i.outcome])
					return
				}
			}
			switch {
			case ctx.Err() != nil:
				yield(e, ctx.Err())
				return
			case i.act == end:
				return
			case e.Type == "":
				continue
			case e.Type != apiwatch.Bookmark:
				e.Object = p.decode(o, i)
			}
			if !yield(e, nil) {
				return
			}
		}
		p.open = true
		p.view()
		yield(api.Event[*sample]{}, errOpen)
	}
}

// pass lets the time pass, in short steps until the version is confirmed, so that trust is exact.
func (p *player) pass(ctx context.Context, rest time.Duration) {
	for step := 2 * time.Second; rest > 0 && ctx.Err() == nil; rest -= step {
		began, pending, down := time.Now(), p.s.confirm.pending, p.s.confirm.down
		if !pending {
			step = rest
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
		}
		synctest.Wait()
		if down || p.s.confirm.down {
			p.lost += time.Since(began)
		}
		if pending && !p.s.confirm.pending && p.trust.IsZero() {
			p.trust = began // by an event or a bookmark before
		}
	}
}

// view notes what the client knows in an open watch.
func (p *player) view() {
	p.w.viewVersion, _ = p.r.status.signs()
	p.w.viewStore, p.w.viewConfirm = p.stored(), p.s.confirm
	p.w.viewConfirm.at = p.w.viewConfirm.at.Add(time.Until(noon))
}

func (p *player) stored() (all objects) {
	for i, name := range sampleNames {
		if o, ok := p.q.Get(api.Key{Name: name}); ok {
			all[i] = o.key
		}
	}
	return all
}

func (w *sight) list(of objects) (all []*sample) {
	for i, k := range of {
		if k.at != 0 {
			all = append(all, w.sample(uint8(i), k))
		}
	}
	return all
}

// shift moves all times of a state.
func shift(s *state, by time.Duration) {
	for _, at := range []*time.Time{&s.watchList.after, &s.failures.at, &s.confirm.at} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
}

// perform makes the request with the real code, as Run does, and returns the world after it.
func (w sight) perform() sight {
	p := &player{w: &w, q: deltafifo.New[*sample]()}
	if w.store != (objects{}) {
		p.q.Replace(w.list(w.store), "")
	}
	o := Options[*sample]{Tuning: Tuning{NoWatchList: w.noWatchList, BackoffBase: 5 * time.Second, BackoffMax: 20 * time.Second, Rand: func() float64 { return 0 }}}
	p.r = New(p, p.q, o)
	turn := &turn[*sample]{s: w.s}
	p.s = &turn.s
	shift(p.s, time.Since(noon))
	p.r.status.reached(w.s.version)
	if w.s.list.token != "" {
		turn.pages = listing[*sample]{staged: stagingFor[*sample](0), since: time.Now(), version: w.name(w.listAt)}
		turn.pages.staged.objects = w.list(w.staged)
	}
	start := time.Now()
	down := w.s.confirm.down
	<-time.After(w.script[0].time)
	paused := time.Since(start)
	err := p.r.perform(context.Background(), turn)
	if down {
		p.lost += paused
	}
	if down && turn.res.outcome == unreachable {
		p.lost = time.Since(start)
	}
	w.viewUp = w.restore.up + time.Since(start) - p.lost
	w.viewLasted, w.trustUp = time.Since(start)-paused, w.viewUp
	if !p.trust.IsZero() {
		w.trustUp -= time.Since(p.trust)
	}
	w.restore.asked = w.restore.asked || p.asked
	if i := &w.script[max(0, w.items-1)]; p.open && i.act == sleep && i.outcome != done && p.probes == 0 {
		i.outcome = done // no probe was sent, so no fault happened
		w.faults++
	}
	if p.open {
		w.open = true
		return w
	}
	if w.last == "" {
		w.last = fmt.Sprint(err)
	}
	before := w.s
	w.wait = p.r.decide(turn, err)
	w.s = turn.s
	w.account(&before, &turn.res, time.Since(start))
	switch {
	case w.variant == forgetsDoubt && w.s.failures.count >= 2 && w.s.do == watch:
		w.s.confirm = confirmation{}
	case w.variant == neverRelists && before.do == watch:
		w.s.do = watch
	}
	shift(&w.s, -time.Since(noon))
	w.store, w.restore.up = p.stored(), w.viewUp
	w.staged, w.listAt = objects{}, 0
	if w.s.list.token != "" {
		for _, o := range turn.pages.staged.objects {
			w.staged[strings.Index("abc", o.name)] = o.key
		}
		w.listAt = moment(w.s.list.token[1])
	}
	w.items, w.open, w.script = 0, false, [maxItems]item{}
	w.viewStore, w.viewVersion, w.viewConfirm, w.viewLasted = w.store, w.s.version, w.s.confirm, 0
	if older(w.s.version, before.version) && (before.list.need != acceptRollback || w.life == 0) {
		w.wrong = fmt.Sprintf("the version went back from %s to %s without a restore that two answers confirm", before.version, w.s.version)
	}
	return w
}

// books is what docs/client-go.md counts in "When a reflector waits". The client does not see it.
type books struct {
	row        streak
	calm       time.Duration // since the last failure
	empty      int           // watches in a row that failed without an event
	incomplete int           // WatchLists in a row that ended before their initial state was complete
	off        time.Duration // until the client may request a WatchList
	stuck      time.Duration // for which the next page fails, with the longest jitter
}

// streak are the failures in a row: whether the last one was of an outage, and whether one led from a watch to a list.
type streak struct {
	failures         int
	outage, relisted bool
}

const retryAfterBusy = 7 * time.Second // of each 429

// pauseAfter doubles from BackoffBase to BackoffMax.
func pauseAfter(failures int) time.Duration {
	return [...]time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second}[min(failures, 3)]
}

// account compares the pause and the next request with the page. before and res are of the request that has ended.
func (w *sight) account(before *state, res *result, passed time.Duration) {
	b, o := &w.books, res.outcome
	b.calm, b.off = b.calm+passed, b.off-passed
	isLater, next := before.list.token != "", &w.s
	isWatch, offline := res.synced && before.do != page, o == busy || o == unreachable
	refused := o == expired || o == tooLarge && !isWatch || o == backwards || o == rolledBack
	wait, spread, lists, lost := time.Duration(0), time.Duration(0), !isWatch, false
	fails := func() {
		if b.calm > 2*time.Minute {
			b.row = streak{}
		}
		b.row.failures, b.calm = b.row.failures+1, 0
		wait = pauseAfter(b.row.failures)
	}
	if isWatch && res.events > 0 {
		if b.empty = 0; res.lasted > 2*pauseAfter(b.row.failures) {
			b.row = streak{}
		}
	}
	switch {
	case before.do == page && o == done:
		b.stuck, lists = 0, !res.synced
	case isWatch && o == done && (res.events > 0 || res.lasted >= time.Second):
		b.empty, wait = 0, max(0, time.Second-res.lasted)
	case isWatch && (refused || o == missed || o == unconfirmed):
		fails()
		if wait = pauseAfter(b.row.failures - 1); b.row.outage && !b.row.relisted {
			wait, spread = 0, 5*time.Second
		}
		b.row.outage, b.row.relisted, b.empty, lists = false, true, 0, true
	case refused:
		lost = isLater && o == expired && !before.list.unlimited
		if o != rolledBack && before.list.need != notOlder && !lost {
			fails()
			b.row.outage = false
		}
	case before.do == watchList && !isWatch && (o == rejected || o == deadline || o == noWatchList):
		b.incomplete, b.off = 0, 10*time.Minute
	default:
		fails()
		b.row.outage = offline
		if isWatch && !offline && res.events == 0 {
			b.empty++
			lists = b.empty == 3
			b.empty %= 3
		}
		if before.do == watchList && !isWatch && !offline {
			if b.incomplete++; b.incomplete == 3 {
				b.off = 10 * time.Minute
			}
			b.incomplete %= 3
		}
	}
	if isWatch {
		b.incomplete = 0
	}
	if o == busy {
		wait = max(wait, retryAfterBusy)
	}
	b.stuck += res.lasted + 2*wait
	switch {
	case w.wait != wait || next.spread != spread:
		w.wrong = fmt.Sprintf("the client waits for %v and up to %v, and not for %v and up to %v", w.wait, next.spread, wait, spread)
	case next.lists() != lists || lists && (next.do == page) != (w.noWatchList || b.off > 0):
		w.wrong = "the next request is not a " + verbNames[next.do]
	case refused && !isWatch && next.list.need == notOlder || lost && !next.list.unlimited:
		w.wrong = "a refused list is not followed by a consistent read, or a lost token not by one page"
	case isLater && offline && (b.stuck <= 30*time.Second) != (next.list.token == before.list.token):
		w.wrong = fmt.Sprintf("a page fails for %v, and the list continues: %v", b.stuck, next.list.token != "")
	}
}

// differs reports whether the client has another state than the server has, or had, at the client's version.
func (w *sight) differs() bool {
	if w.viewVersion == "" {
		return false
	}
	at := w.at(w.viewVersion)
	return at.version() > w.version || w.viewStore != w.objects(at.version())
}

// check notes a broken rule, or that a documented limit applies.
func (w sight) check() sight {
	differs := w.differs()
	w.restore.excused = w.restore.excused && differs
	switch {
	case w.wrong != "" || !differs || w.restore.excused:
	case w.life == 0:
		w.wrong = "the store differs from the server, which was never restored"
	case w.opaque || w.viewConfirm.pending:
	case w.at(w.viewVersion).version() <= w.version && !w.restore.asked && w.trustUp <= 30*time.Second:
		w.restore.excused = true
	default:
		w.wrong = fmt.Sprintf("the client trusts version %s although the server was restored, and has answered for %v since", w.viewVersion, w.trustUp)
	}
	return w
}

func (w sight) add(items ...item) sight {
	w.items += copy(w.script[w.items:], items)
	return w
}

func (w sight) describe(format string, args ...any) sight {
	w.last = fmt.Sprintf(format, args...)
	return w
}

// next yields the world after each step that can follow.
func (w sight) next(yield func(sight)) {
	w.last = ""
	to := func(s sight) { yield(s.check()) }
	w.writes(to)
	w.restores(to)
	if w.compacted < w.version && !w.opaque {
		c := w.describe("the server forgets the versions before %d", w.version)
		c.compacted = w.version
		to(c)
	}
	if w.open {
		w.proceed(to)
	} else {
		w.request(to)
	}
}

func (w sight) writes(to func(sight)) {
	if w.version == w.mostWrites {
		return
	}
	now := w.objects(w.version)
	for name := range w.mostNames {
		born := momentOf(w.life, w.version+1)
		for _, born := range []moment{born, now[name].born, 0} {
			if born == 0 && now[name].born == 0 || born == momentOf(w.life, w.version+1) && now[name].born != 0 {
				continue // it deletes or changes what does not exist, or creates what exists
			}
			s := w
			s.write(name, born)
			to(s.describe("the server writes version %d: %s, created at %d", s.version, sampleNames[name], born.version()))
			if now[name].born == 0 {
				break
			}
		}
	}
}

// restores yields a restore to each older version. It takes time, so it breaks an open watch, or happens in a pause.
func (w sight) restores(to func(sight)) {
	if w.life == maxLives || !w.open && w.wait == 0 {
		return
	}
	for version := 1; version < w.version; version++ {
		s := w
		if s.open {
			s = s.add(item{act: end, outcome: broken}).perform()
		}
		clear(s.log[version:])
		s.version, s.compacted, s.life = version, min(s.compacted, version), s.life+1
		s.restore = ghost{}
		s.viewUp, s.trustUp = 0, 0
		to(s.describe("the server is restored to version %d", version))
	}
}

// request yields the world after each answer of the next request.
func (w sight) request(to func(sight)) {
	for jitter := range time.Duration(2) {
		s := w.add(item{act: pause, time: w.wait*(1+jitter) + w.s.spread*jitter})
		answer := func(what string, faults int, items ...item) {
			if faults <= s.faults {
				a := s.add(items...)
				a.faults -= faults
				a = a.describe("%s after %v, from version %q: %s", verbNames[w.s.do], a.script[0].time, w.s.version, what)
				to(a.perform())
			}
		}
		for _, o := range []outcome{expired, tooLarge, unreachable, busy, rejected, deadline, broken, noWatchList} {
			if o != noWatchList || s.s.do == watchList {
				answer(outcomeNames[o], 1, item{act: end, outcome: o, at: w.lineage(w.version)})
			}
		}
		switch s.s.do {
		case watchList:
			s.answerWatchList(answer)
		case page:
			s.answerPage(answer)
		default:
			s.openWatch(to, answer)
		}
		if w.wait+w.s.spread == 0 {
			return
		}
	}
}

// fullList returns the items of a whole state.
func (w *sight) fullList(version, from, limit int, last act) (items []item) {
	for name, k := range w.objects(version) {
		if name < from || k.at == 0 {
			continue
		}
		if limit > 0 && len(items) == limit {
			return append(items, item{act: last, at: w.lineage(version), name: uint8(name)})
		}
		items = append(items, item{act: object, name: uint8(name), state: k, at: k.at})
	}
	return append(items, item{act: last, at: w.lineage(version)})
}

// refusal returns how a healthy server refuses a list or watch of a version, or done.
func (w *sight) refusal(version string, isWatch bool) outcome {
	if version == "" || version == "0" {
		return done
	}
	at := w.at(version)
	switch has, later := w.has(at); {
	case later && !isWatch:
		return tooLarge
	case !has && !later, isWatch && at.version() < w.compacted:
		return expired
	}
	return done
}

func (w *sight) answerWatchList(answer func(string, int, ...item)) {
	version := w.s.version
	if w.s.list.need > notOlder {
		version = ""
	}
	if o := w.refusal(version, false); o != done {
		answer("the server's answer is "+outcomeNames[o], 0, item{act: end, outcome: o})
	} else {
		answer("complete", 0, w.fullList(w.version, 0, 0, endOfList)...)
	}
	items := w.fullList(w.version, 0, 0, endOfList)
	for n := range items {
		for _, o := range []outcome{done, broken, deadline} {
			if n > 0 || o == done {
				answer(fmt.Sprintf("%s after %d objects", outcomeNames[o], n), 1, append(items[:n:n], item{act: end, outcome: o})...)
			}
		}
	}
	if w.version > 1 && !w.opaque && w.s.list.need == notOlder {
		before := w.fullList(w.version-1, 0, 0, endOfList)
		answer("a stale state", 1, before...)
	}
	if w.version > 1 && w.refusal(version, false) == done {
		before := w.fullList(w.version-1, 0, 0, endOfList)
		late := append(before[:len(before)-1:len(before)-1], w.event(w.version-1), item{act: endOfList, at: w.lineage(w.version)})
		answer("complete, with a change before its end", 0, late...)
	}
}

func (w *sight) answerPage(answer func(string, int, ...item)) {
	limit := 0
	if w.paged && !w.s.list.unlimited {
		limit = 1
	}
	if token := w.s.list.token; token != "" {
		at, from := moment(token[1]), int(token[2])
		if _, later := w.has(at); later || at.version() < w.compacted {
			o := expired
			if later {
				o = broken
			}
			answer("the server's answer is "+outcomeNames[o], 0, item{act: end, outcome: o})
			return
		}
		answer("a later page", 0, w.fullList(at.version(), from, limit, endOfPage)...)
		return
	}
	version := w.s.listVersion()
	if o := w.refusal(version, false); o != done {
		answer("the server's answer is "+outcomeNames[o], 0, item{act: end, outcome: o})
	} else {
		answer("a page", 0, w.fullList(w.version, 0, limit, endOfPage)...)
	}
	if w.version > 1 && w.s.list.need == notOlder && (!w.opaque || version == "0") {
		stale := 1
		if version == "0" {
			stale = 0
		}
		answer("an old page", stale, w.fullList(w.version-1, 0, limit, endOfPage)...)
	}
}

func (w *sight) openWatch(to func(sight), answer func(string, int, ...item)) {
	if o := w.refusal(w.s.version, true); o != done {
		answer("the server's answer is "+outcomeNames[o], 0, item{act: end, outcome: o})
		return
	}
	s := w.describe("watch after %v, from version %q: open", w.script[0].time, w.s.version)
	to(s.perform())
}

// event returns the event of a write.
func (w *sight) event(n int) item {
	e := w.log[n]
	if e.born == 0 {
		return item{act: deletion, name: uint8(e.name), state: known{w.objects(n)[e.name].born, e.at}, at: e.at}
	}
	return item{act: change, name: uint8(e.name), state: known{e.born, e.at}, at: e.at}
}

// proceed yields the world after each thing that can happen in an open watch.
func (w sight) proceed(to func(sight)) {
	happens := func(what string, faults int, items ...item) {
		if faults <= w.faults {
			s := w.add(items...).describe("in the watch: %s", what)
			s.faults -= faults
			to(s.perform())
		}
	}
	happens("the server closes it", 0, item{act: end})
	for _, o := range []outcome{expired, busy, rejected, broken, unreachable, tooLarge} {
		happens(outcomeNames[o], 1, item{act: end, outcome: o})
	}
	if w.items >= maxItems-1 {
		return
	}
	happens("a check finds a missing change", 1, item{act: missing})
	sent := w.reached()
	if sent < w.version {
		happens(fmt.Sprintf("the event of version %d", sent+1), 0, w.event(sent))
	} else if sent == w.version && w.version > w.begun() {
		happens("a bookmark", 0, item{act: bookmark, at: w.lineage(w.version)})
	}
	if sent <= w.version && !w.opaque { // without an order, a client cannot know that these are old
		for n := range sent {
			happens(fmt.Sprintf("the event of version %d again", n+1), 1, w.event(n))
		}
		if sent > 1 {
			happens("an old bookmark", 1, item{act: bookmark, at: w.lineage(sent - 1)})
		}
	}
	for _, d := range []time.Duration{2 * time.Second, 40 * time.Second, 80 * time.Second} {
		for _, o := range []outcome{done, busy, unreachable, rejected, deadline, broken} {
			faults := min(1, int(o))
			happens(fmt.Sprintf("%v pass, probes: %s", d, outcomeNames[o]), faults, w.rest(d, o))
		}
	}
}

func (w *sight) rest(d time.Duration, probes outcome) item {
	return item{act: sleep, time: d, outcome: probes, at: w.lineage(w.version)}
}

// reached returns the version up to which the open watch has sent events, and begun the one from which it began.
func (w *sight) reached() int {
	at := w.begun()
	for _, i := range w.script[:w.items] {
		if i.act == change || i.act == deletion {
			at = max(at, i.at.version())
		}
	}
	return at
}

func (w *sight) begun() int {
	for _, i := range w.script[:w.items] {
		if i.act == endOfList {
			return i.at.version()
		}
	}
	return w.at(w.s.version).version()
}

// fair returns the next step of a healthy server and its client, and whether both are at rest and agree.
func (w sight) fair() (next sight, good bool) {
	w.last = ""
	if !w.open {
		w.faults = 0
		first := true
		w.request(func(s sight) {
			if first {
				next, first = s, false
			}
		})
		return next.check(), false
	}
	sent := w.reached()
	if sent == w.version && !w.viewConfirm.pending && (!w.differs() || w.restore.excused) {
		return w, true
	}
	step := w.rest(80*time.Second, done)
	switch {
	case w.items >= maxItems-1:
		step = item{act: end}
	case sent < w.version:
		step = w.event(sent)
	case sent == w.version && w.version > w.begun() && w.script[w.items-1].act != bookmark:
		step = item{act: bookmark, at: w.lineage(w.version)}
	}
	w = w.add(step).describe("fair: %+v", step)
	return w.perform().check(), false
}

// key appends what distinguishes the world from others. Times are rounded. Those
// that are compared with a limit are exact up to the limit.
func (w sight) key(to []byte) []byte {
	seconds := func(t time.Time, step, most time.Duration) {
		d := time.Duration(0)
		if !t.IsZero() {
			d = min(noon.Sub(t), most)/step + 1
		}
		to = append(to, byte(d))
	}
	flags := func(all ...bool) {
		b := byte(0)
		for i, f := range all {
			if f {
				b |= 1 << i
			}
		}
		to = append(to, b)
	}
	for _, e := range w.log[:w.version] {
		to = append(to, byte(e.name), byte(e.born), byte(e.at))
	}
	to = append(to, byte(w.version), byte(w.compacted), byte(w.life), byte(w.faults))
	s, c := w.s, w.viewConfirm
	if w.life == 0 {
		w.viewUp = 0
	}
	flags(w.opaque, w.noWatchList, w.paged, w.open, w.restore.asked, w.restore.excused, w.wrong != "")
	flags(s.list.unlimited, s.failures.outage, s.failures.relisted, c.pending, c.down, c.refused, s.serverPages, w.viewLasted >= time.Second)
	to = append(to, byte(s.do), byte(s.list.need), byte(s.watchList.failures), byte(s.watches.failures), byte(s.failures.count), byte(c.probes), byte(len(w.viewVersion)), byte(len(s.list.token)))
	to = append(append(to, w.viewVersion...), s.list.token...)
	seconds(s.failures.at, time.Second, 121*time.Second)
	seconds(s.watchList.after, time.Minute, 0)
	to = append(to, byte(min(c.exposed, 31*time.Second)/time.Second), byte(min(w.viewUp, 31*time.Second)/time.Second),
		byte(min(s.watches.silence, 80*time.Second)/(5*time.Second)), byte(w.wait/time.Second), byte(s.spread/time.Second), byte(w.listAt), byte(s.list.failing/time.Second))
	for _, all := range []objects{w.viewStore, w.staged} {
		for _, k := range all {
			to = append(to, byte(k.born), byte(k.at))
		}
	}
	if !w.open {
		return to
	}
	to = append(to, byte(w.reached()), byte(w.begun()))
	sign := byte(0)
	for _, i := range w.script[:w.items] {
		switch i.act {
		case sleep:
			to = append(to, sign, byte(i.time/time.Second), byte(i.outcome), byte(i.at))
			sign = 0
		case change, deletion, bookmark:
			sign = 1
		}
	}
	return binary.LittleEndian.AppendUint16(append(to, sign), uint16(min(w.viewLasted, 81*time.Second)/(5*time.Second)))
}

const maxLives = 2

// reflectorWorlds are servers of several kinds, each with a reflector. faults are how many faults may happen.
func reflectorWorlds(faults int) map[string]sight {
	worlds := map[string]sight{
		"restores": {faults: faults, mostNames: 1, mostWrites: 4},
		"late":     {faults: faults, mostNames: 1, mostWrites: 4, s: state{failures: failureState{count: 3, at: noon}}},
		"objects":  {faults: faults - 1, mostNames: maxNames, mostWrites: maxWrites, s: state{watchList: watchListState{failures: 2}}},
		"opaque":   {faults: faults - 1, mostNames: 2, mostWrites: 4, opaque: true},
		"pages":    {faults: faults - 1, mostNames: 2, mostWrites: 4, noWatchList: true, paged: true},
		"busy":     {faults: faults - 1, mostNames: 2, mostWrites: 4, noWatchList: true, paged: true, s: state{failures: failureState{count: 3, at: noon}}},
	}
	for name, s := range worlds {
		for version := range 2 {
			s.write(version%s.mostNames, momentOf(0, 1+version%s.mostNames))
		}
		s.s.do = newLimits(!s.noWatchList, 0, 0).first(noon).do
		s.books.row.failures, s.books.incomplete = s.s.failures.count, s.s.watchList.failures
		worlds[name] = s
	}
	return worlds
}

// watching returns the world after a complete WatchList.
func (w sight) watching(t *testing.T) sight {
	synctest.Test(t, func(*testing.T) {
		w = w.add(item{act: pause}).add(w.fullList(w.version, 0, 0, endOfList)...).perform()
	})
	return w
}

func reflectorWorld(first sight) explore.World[sight] {
	return explore.World[sight]{
		First: []sight{first},
		Next:  sight.next, Key: sight.key, Fair: sight.fair, FairSteps: 12,
		Check: func(s sight) error {
			if s.wrong != "" {
				return errors.New(s.wrong)
			}
			return nil
		},
		Describe: func(s sight) string { return s.last },
	}
}

// TestExplore makes every order of writes, restores, answers, faults and pauses.
func TestExplore(t *testing.T) {
	for name, first := range reflectorWorlds(3) {
		t.Run(name, func(t *testing.T) {
			o := explore.Options{Depth: 40, States: 5_000, Around: explore.InBubbles(t)}
			if name == "restores" || name == "late" {
				first, o.States = first.watching(t), 10_000
			}
			explore.Test(t, reflectorWorld(first), o)
		})
	}
}

// Each variant breaks a rule that leat, or another reflector, has broken once. The exploration must find it. Those with
// a rule in words are counterexamples of leat explore.
func TestExploreFindsBrokenRules(t *testing.T) {
	for broken, v := range map[variant]struct{ want, file, rule string }{
		forgetsDoubt: {"the client trusts version", "forgotten_doubt", "After two failures in a row, the client no longer doubts its version."},
		neverRelists: {"no good end", "", ""}, // 410 after 410
		keepsKnown:   {"the client trusts version", "known_object_reused", "A list after a restore keeps each known object whose version has not changed."},
	} {
		first := reflectorWorlds(3)["restores"]
		first.variant = broken
		w := reflectorWorld(first)
		o := explore.Options{Depth: 40, States: 50_000, Around: explore.InBubbles(t)}
		if v.file == "" {
			explore.Finds(t, w, o, v.want)
			continue
		}
		w.First[0] = first.watching(t).describe("the client has listed version 2 and watches from there")
		o.Workers = 1 // so that the steps are always the same
		report := explore.Finds(t, w, o, v.want)
		w.Describe = func(s sight) string { return s.last + "\n" + s.sides() }
		synctest.Test(t, func(t *testing.T) {
			explore.Save(t, "../docs/counterexamples/"+v.file+".txt", v.rule, "The store goes back only if the server was restored, and then the reflector notices it and replaces its content (package reflector, 5).", report, explore.Replay(w, report.Choices))
		})
	}
}

// sides returns what the server has and what the client knows, as docs/exploration.md shows it. A quote marks what was
// written after a restore.
func (w sight) sides() string {
	text := func(all objects) (out string) {
		for i, k := range all {
			if k.at != 0 {
				out += fmt.Sprintf(" %s of %d%s", sampleNames[i], k.at.version(), strings.Repeat("'", k.at.life()))
			}
		}
		return cmp.Or(out, " nothing")
	}
	knows := map[bool]string{false: "sure", true: "in doubt"}[w.viewConfirm.pending]
	return fmt.Sprintf("   server: version %d,%s\n   client: version %s, %s,%s", w.version, text(w.objects(w.version)), cmp.Or(w.viewVersion, "none"), knows, text(w.viewStore))
}

// TestTheCounterexampleOfTheDocs compares docs/exploration.md with the hole of R13 that the exploration finds again.
func TestTheCounterexampleOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/exploration.md")
	require.NoError(t, err)
	text, err := os.ReadFile("../docs/counterexamples/forgotten_doubt.txt")
	require.NoError(t, err)
	_, steps, _ := strings.Cut(string(text), "\n\n")
	require.Contains(t, string(page), "```\n"+steps+"```\n")
}
