package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
)

func TestListOptions(t *testing.T) {
	const notOlder = metav1.ResourceVersionMatchNotOlderThan
	yes, seconds := true, int64(400)
	for name, c := range map[string]struct {
		s        state
		pageSize int64
		want     metav1.ListOptions
	}{
		"the first list is of any version": {
			s: state{do: page}, want: metav1.ListOptions{ResourceVersion: "0", Limit: 500},
		},
		"the first list, with a page size": {
			s: state{do: page}, pageSize: 7, want: metav1.ListOptions{ResourceVersion: "0", Limit: 7},
		},
		"the next page says its token and nothing else": {
			s: state{do: page, version: "9", list: listState{token: "t"}}, want: metav1.ListOptions{Continue: "t", Limit: 500},
		},
		"the next page, with a page size": {
			s: state{do: page, list: listState{token: "t"}}, pageSize: 7, want: metav1.ListOptions{Continue: "t", Limit: 7},
		},
		"a later list is not older than what is known, and left to the cache": {
			s: state{do: page, version: "9"}, want: metav1.ListOptions{ResourceVersion: "9", ResourceVersionMatch: notOlder},
		},
		"a later list, with a page size, is not one of exactly that version": {
			s: state{do: page, version: "9"}, pageSize: 7,
			want: metav1.ListOptions{ResourceVersion: "9", ResourceVersionMatch: notOlder, Limit: 7},
		},
		"a later list of a server without a watch cache is paged": {
			s:    state{do: page, version: "9", serverPages: true},
			want: metav1.ListOptions{ResourceVersion: "9", ResourceVersionMatch: notOlder, Limit: 500},
		},
		"a consistent read is paged": {
			s: state{do: page, version: "9", list: listState{need: consistentRead}}, want: metav1.ListOptions{Limit: 500},
		},
		"a consistent read without a known version": {
			s: state{do: page, list: listState{need: consistentRead}}, want: metav1.ListOptions{Limit: 500},
		},
		"one list in place of the pages that were lost": {
			s: state{do: page, version: "9", list: listState{need: consistentRead, unlimited: true}}, pageSize: 7, want: metav1.ListOptions{},
		},
		"a server without versions gets requests for any version": {
			s: state{do: page, version: "0"}, want: metav1.ListOptions{ResourceVersion: "0", Limit: 500},
		},
		"the first WatchList is a consistent read": {
			s: state{do: watchList}, want: metav1.ListOptions{
				SendInitialEvents: &yes, ResourceVersionMatch: notOlder, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
			},
		},
		"a later WatchList is not older than what is known": {
			s: state{do: watchList, version: "9"}, pageSize: 7, want: metav1.ListOptions{
				SendInitialEvents: &yes, ResourceVersion: "9", ResourceVersionMatch: notOlder, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
			},
		},
		"a WatchList as a consistent read": {
			s: state{do: watchList, version: "9", list: listState{need: consistentRead}}, want: metav1.ListOptions{
				SendInitialEvents: &yes, ResourceVersionMatch: notOlder, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
			},
		},
		"a watch continues from the version reached": {
			s:    state{do: watch, version: "9"},
			want: metav1.ListOptions{ResourceVersion: "9", AllowWatchBookmarks: true, TimeoutSeconds: &seconds},
		},
		"a watch of a server without versions": {
			s: state{do: watch}, pageSize: 7, want: metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &seconds},
		},
	} {
		require.Equal(t, c.want, c.s.listOptions(c.pageSize, 400*time.Second), name)
	}
}

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	tooLargeCause := apierrors.NewTimeoutError("later", 1)
	tooLargeCause.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://server", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, c := range []struct {
		name string
		err  error
		want outcome
	}{
		{"no error", nil, done},
		{"410 of a list", apierrors.NewResourceExpired("too old"), expired},
		{"410 Gone, as etcd answered", status(http.StatusGone, metav1.StatusReasonGone, "compacted"), expired},
		{"410 without a reason", status(http.StatusGone, "", ""), expired},
		{"too large, by its cause", tooLargeCause, tooLarge},
		{"too large, as in 1.17", status(504, metav1.StatusReasonTimeout, "Too large resource version: 9, current: 7"), tooLarge},
		{"too large, as in 1.16", status(500, "", "Too large resource version: 9, current: 7"), tooLarge},
		{"429", apierrors.NewTooManyRequests("slow down", 3), busy},
		{"429 without a reason", status(429, "", ""), busy},
		{"503", apierrors.NewServiceUnavailable("starting"), busy},
		{"refused", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), unreachable},
		{"refused, behind a proxy", &net.OpError{Op: "proxyconnect", Err: dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))}, unreachable},
		{"no such host", dial(&net.DNSError{Err: "no such host", Name: "server"}), unreachable},
		{"no route", dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), unreachable},
		{"dial timed out", dial(context.DeadlineExceeded), unreachable},
		{"400", apierrors.NewBadRequest("no"), rejected},
		{"403", apierrors.NewForbidden(pods, "", errors.New("no")), rejected},
		{"404", apierrors.NewNotFound(pods, ""), rejected},
		{"405", apierrors.NewMethodNotSupported(pods, "watch"), rejected},
		{"406", status(406, metav1.StatusReasonNotAcceptable, ""), rejected},
		{"422", status(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden"), rejected},
		{"the same page again", ErrSamePage, rejected},
		{"401 may be temporary", apierrors.NewUnauthorized("expired"), broken},
		{"408 may be temporary", status(408, metav1.StatusReasonTimeout, ""), broken},
		{"a status without a code", status(0, "", ""), broken},
		{"500", apierrors.NewInternalError(errors.New("etcd")), broken},
		{"504", apierrors.NewTimeoutError("later", 1), broken},
		{"reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, broken},
		{"cut", io.ErrUnexpectedEOF, broken},
		{"unknown event", ErrUnknownEvent, broken},
		{"anything", errors.New("unknown"), broken},
		{"stalled", ErrStalled, deadline},
		{"backwards", ErrBackwards, backwards},
		{"rolled back", errRolledBack, rolledBack},
		{"missed", ErrMissed, missed},
		{"no WatchList", api.ErrNoWatchList, noWatchList},
	} {
		require.Equal(t, c.want, classify(c.err), c.name)
		if c.err != nil {
			require.Equal(t, c.want, classify(fmt.Errorf("list pods: %w", c.err)), "%s, wrapped", c.name)
		}
	}
	require.ErrorIs(t, errRolledBack, ErrBackwards)
	require.False(t, strings.Contains(errRolledBack.Error(), "%"))
}

func TestRetryAfter(t *testing.T) {
	require.Zero(t, retryAfter(nil))
	require.Zero(t, retryAfter(io.EOF))
	require.Zero(t, retryAfter(&apierrors.StatusError{}))
	require.Equal(t, 3*time.Second, retryAfter(fmt.Errorf("watch: %w", apierrors.NewTooManyRequests("", 3))))
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true},
		{"10", "9", false},
		{"9", "9", false},
		{"", "9", false},
		{"9", "", false},
		{"0", "9", false},
		{"9", "0", false},
		{"a", "b", false},
		{"b", "a", false},
		{"09", "10", false},
	} {
		require.Equal(t, c.want, older(c.a, c.b), "%q %q", c.a, c.b)
	}
}

func TestStaging(t *testing.T) {
	s := stagingFor[*metav1.PartialObjectMetadata](4)
	object := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	names := func() (all []string) {
		for _, o := range s.objects {
			all = append(all, o.Name+o.ResourceVersion)
		}
		return all
	}
	for _, name := range []string{"a", "b", "c", "b"} {
		s.put(object(name, "1"))
	}
	require.Equal(t, []string{"a1", "b1", "c1"}, names())
	s.put(object("b", "2"))
	s.put(object("d", "2"))
	s.remove(keyNamed("a"))
	s.remove(keyNamed("unknown"))
	require.Equal(t, []string{"d2", "b2", "c1"}, names())
	got, ok := s.get(keyNamed("d"))
	require.True(t, ok)
	require.Equal(t, "d", got.Name)
	s.truncate(2)
	require.Equal(t, []string{"d2", "b2"}, names())
	require.Nil(t, s.objects[:3][2], "the slice keeps no object behind its end")
	for _, name := range []string{"d", "b"} {
		s.remove(keyNamed(name))
	}
	require.Empty(t, s.objects)
	require.Empty(t, s.position)
	for _, left := range s.objects[:cap(s.objects)] {
		require.Nil(t, left, "the slice keeps no object behind its end")
	}
}

func keyNamed(name string) api.Key { return api.Key{Name: name} }

// TestStagingModel compares staging with a map, for keys in any order.
func TestStagingModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, model := stagingFor[*metav1.PartialObjectMetadata](0), map[api.Key]string{}
		for version := range 40 {
			key := api.Key{Namespace: []string{"a", "a-b", "b"}[r.IntN(3)], Name: fmt.Sprintf("%02d", r.IntN(12))}
			if seed%2 == 0 && version < 20 { // in ascending order first
				key = api.Key{Namespace: []string{"a-b", "a"}[version/10], Name: fmt.Sprintf("%02d", version%10)}
			}
			switch what := r.IntN(10); {
			case what < 7:
				s.put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					Namespace: key.Namespace, Name: key.Name, ResourceVersion: fmt.Sprint(version),
				}})
				model[key] = fmt.Sprint(version)
			case what < 8:
				s.remove(key)
				delete(model, key)
			case what < 9:
				left := max(0, len(s.objects)+r.IntN(3)-1) // an undecodable object may have removed some since
				for _, object := range s.objects[min(left, len(s.objects)):] {
					delete(model, api.KeyOf(object))
				}
				s.truncate(left)
			}
			if r.IntN(8) == 0 { // get needs an index, and the other methods must not depend on it
				object, found := s.get(key)
				require.Equal(t, model[key] != "", found)
				if found {
					require.Equal(t, model[key], object.ResourceVersion)
				}
			}
			staged := map[api.Key]string{}
			for _, object := range s.objects {
				staged[api.KeyOf(object)] = object.ResourceVersion
			}
			require.Equal(t, model, staged)
			require.Len(t, s.objects, len(staged), "each key once")
		}
	}
}

// precedes is the order of the paths.
func TestPrecedes(t *testing.T) {
	var keys []api.Key
	for _, namespace := range []string{"", "a", "a-b", "a.b", "a0", "ab", "b"} {
		for _, name := range []string{"a", "a-b", "b"} {
			keys = append(keys, api.Key{Namespace: namespace, Name: name})
		}
	}
	for _, a := range keys {
		for _, b := range keys {
			require.Equal(t, a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name, precedes(a, b), "%v %v", a, b)
		}
	}
}

// TestAscendingKeysNeedNoIndex uses an order in which kube-apiserver lists.
func TestAscendingKeysNeedNoIndex(t *testing.T) {
	s := stagingFor[*metav1.PartialObjectMetadata](0)
	for _, path := range []string{"a-b/x", "a/w", "a/x", "a/x-1", "ab/a", "b/a"} {
		namespace, name, _ := strings.Cut(path, "/")
		_, found := s.get(api.Key{Namespace: namespace, Name: name})
		require.False(t, found)
		s.put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	require.Nil(t, s.position)
	s.put(s.objects[0])
	require.NotNil(t, s.position)
	require.Len(t, s.objects, 6)
}
