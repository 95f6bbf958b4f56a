package codec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestListOfPods(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		for _, reader := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r },
			func(r io.Reader) io.Reader { return oneByte{r} },
		} {
			n := 0
			meta := must.Get(podCodec.DecodeList(context.Background(), reader(bytes.NewReader(podList(5, media))), media, pods, podOptions{}, func(pod *corev1.Pod) error {
				requireSame(t, newPod(n), pod)
				n++
				return nil
			}))(t)
			require.Equal(t, 5, n)
			require.Equal(t, metav1.ListMeta{ResourceVersion: "4242", Continue: "more"}, meta)
		}
	}
}

func TestListOfEveryFlavour(t *testing.T) {
	metadata, _, err := collect(metadataCodec, string(podList(2, asProtobuf)), asProtobuf, pods, api.Options[*metav1.PartialObjectMetadata]{})
	require.NoError(t, err)
	require.Len(t, metadata, 2)
	requireSame(t, newPod(1).ObjectMeta, metadata[1].ObjectMeta)
	require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, metadata[1].TypeMeta)

	projected, _, err := collect(smallCodec, string(podList(2, asJSON)), asJSON, pods, api.Options[*small]{})
	require.NoError(t, err)
	require.Equal(t, newPod(1).Labels, projected[1].Metadata.Labels)
	require.Equal(t, newPod(1).Spec.NodeName, projected[1].Spec.NodeName)

	generic, _, err := collect(unstructuredCodec, string(podList(2, asJSON)), asJSON, pods, unstructuredOptions{})
	require.NoError(t, err)
	require.Equal(t, "Pod", generic[1].GetKind())
	var want map[string]any
	require.NoError(t, sigsjson.UnmarshalCaseSensitivePreserveInts(mustJSON(newPod(1)), &want))
	require.Equal(t, want, generic[1].Object)
}

// The kind of a list gives the kind of its items. It is used if the caller names no resource.
func TestListItemsGetKindOfList(t *testing.T) {
	body := `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"kind":"Own","apiVersion":"x/v2","metadata":{"name":"b"}}]}`
	generic, _, err := collect(unstructuredCodec, body, asJSON, api.Resource{}, unstructuredOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "Pod", "x/v2", "Own"}, []string{
		generic[0].GetAPIVersion(), generic[0].GetKind(), generic[1].GetAPIVersion(), generic[1].GetKind(),
	})
	typed, _, err := collect(podCodec, body, asJSON, api.Resource{}, podOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"Pod", "Own"}, []string{typed[0].Kind, typed[1].Kind})
}

func TestListMetadataMayComeLast(t *testing.T) {
	body := `{"items":[{"metadata":{"name":"a"}}],"extra":{"big":[1,2,{"x":"y"}]},"metadata":{"resourceVersion":"9","remainingItemCount":3},"apiVersion":"v1","kind":"PodList"} ` + "\n"
	items, meta, err := collect(podCodec, body, asJSON, pods, podOptions{})
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Equal(t, "9", meta.ResourceVersion)
	require.EqualValues(t, 3, *meta.RemainingItemCount)
	require.Equal(t, "Pod", items[0].Kind)
}

func TestListOfNothing(t *testing.T) {
	for _, body := range []string{
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":null}`,
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"}}`,
		`{"metadata":{"resourceVersion":"1"},"items":[]}`,
	} {
		items, meta, err := collect(podCodec, body, asJSON, pods, podOptions{})
		require.NoError(t, err, body)
		require.Empty(t, items)
		require.Equal(t, "1", meta.ResourceVersion)
	}
	items, meta, err := collect(podCodec, string(sealed("v1", "PodList", &corev1.PodList{})), asProtobuf, pods, podOptions{})
	require.NoError(t, err)
	require.Empty(t, items)
	require.Empty(t, meta)
}

// parts returns one part per read, and before each calls a function with the number of parts that were read.
type parts struct {
	parts  [][]byte
	before func(read int)
	read   int
}

func (p *parts) Read(b []byte) (int, error) {
	p.before(p.read)
	if p.read == len(p.parts) {
		return 0, io.EOF
	}
	n := copy(b, p.parts[p.read])
	if p.parts[p.read] = p.parts[p.read][n:]; len(p.parts[p.read]) == 0 {
		p.read++
	}
	return n, nil
}

// Each item is handed out when its last byte has arrived, not when the next read returns.
func TestListHandsOutItemsAsTheyArrive(t *testing.T) {
	item := func(i int) []byte {
		return mustMarshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}
	size := len(item(0)) + 2
	sealed := sealedBytes("v1", "PodList", bytes.Repeat([]byte{0}, 3*size))
	head := sealed[:bytes.Index(sealed, bytes.Repeat([]byte{0}, 3*size))]
	field := func(i int) []byte { return append([]byte{0x12, byte(size - 2)}, item(i)...) }
	for media, body := range map[string][][]byte{
		asJSON: {
			[]byte(`{"kind":"PodList","items":[`), []byte(`{"metadata":{"name":"0"}}`), []byte(`,{"metadata":{"name":"1"}}`),
			[]byte(`, {"metadata":{"name":"2"}}`), []byte(`]}`),
		},
		asProtobuf: {head, field(0), field(1), field(2)},
	} {
		t.Run("media="+media, func(t *testing.T) {
			handedOut := 0
			r := &parts{parts: body, before: func(read int) {
				require.Equal(t, min(max(0, read-1), 3), handedOut, "after %d parts", read)
			}}
			must.Get(metadataCodec.DecodeList(context.Background(), r, media, pods, api.Options[*metav1.PartialObjectMetadata]{}, func(o *metav1.PartialObjectMetadata) error {
				require.Equal(t, fmt.Sprint(handedOut), o.Name)
				handedOut++
				return nil
			}))(t)
			require.Equal(t, 3, handedOut)
		})
	}
}

func TestListEndsWithErrorOfEach(t *testing.T) {
	enough := errors.New("enough")
	for _, media := range []string{asJSON, asProtobuf} {
		calls := 0
		_, err := podCodec.DecodeList(context.Background(), bytes.NewReader(podList(5, media)), media, pods, podOptions{}, func(*corev1.Pod) error {
			calls++
			return enough
		})
		require.Equal(t, enough, err)
		require.Equal(t, 1, calls)
	}
}

func TestListReportsUndecodable(t *testing.T) {
	body := `{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"a","namespace":"n"}},
		{"metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{"containers":"none"}},
		{"metadata":{"name":"c","namespace":"n"}}]}`
	var reports []*api.UndecodableError
	items, _, err := collect(podCodec, body, asJSON, pods, podOptions{OnUndecodable: func(u *api.UndecodableError) error {
		reports = append(reports, u)
		return nil
	}})
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Len(t, reports, 1)
	require.Equal(t, api.Key{Namespace: "n", Name: "b"}, reports[0].Key)
	require.EqualValues(t, "u", reports[0].UID)
	require.Equal(t, "7", reports[0].ResourceVersion)
	require.Equal(t, pods, reports[0].Resource)
	require.Empty(t, reports[0].Type)

	stop := errors.New("stop")
	items, _, err = collect(podCodec, body, asJSON, pods, podOptions{OnUndecodable: func(*api.UndecodableError) error { return stop }})
	require.Equal(t, stop, err)
	require.Len(t, items, 1)

	_, _, err = collect(podCodec, body, asJSON, pods, podOptions{})
	var undecodable *api.UndecodableError
	require.ErrorAs(t, err, &undecodable)
	require.Equal(t, "b", undecodable.Key.Name)
}

func TestProtobufListReportsUndecodable(t *testing.T) {
	// The second item's spec is cut off inside, but its metadata is complete.
	good := mustMarshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	bad := append(mustMarshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "n", UID: "u", ResourceVersion: "7"}}), 0x12, 0x02, 0x0a, 0x7f)
	var raw []byte
	for _, item := range [][]byte{good, bad, good} {
		raw = append(append(raw, 0x12, byte(len(item))), item...)
	}
	body := string(sealedBytes("v1", "PodList", raw))
	var reports []*api.UndecodableError
	items, _, err := collect(podCodec, body, asProtobuf, pods, podOptions{OnUndecodable: func(u *api.UndecodableError) error {
		reports = append(reports, u)
		return nil
	}})
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Len(t, reports, 1)
	require.Equal(t, api.Key{Namespace: "n", Name: "b"}, reports[0].Key)
	require.Equal(t, "7", reports[0].ResourceVersion)
}

func mustMarshal(m interface{ Marshal() ([]byte, error) }) []byte {
	b, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

func TestListAnsweredWithSomethingElse(t *testing.T) {
	for _, body := range []string{
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"gone","reason":"Expired","code":410}`,
		`{"code":410,"reason":"Expired","message":"gone","status":"Failure","metadata":{},"apiVersion":"v1","kind":"Status"}`,
	} {
		_, _, err := collect(podCodec, body, asJSON, pods, podOptions{})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.ErrorContains(t, err, "gone")
	}
	_, _, err := collect(podCodec, string(sealed("v1", "Status", &metav1.Status{Status: "Failure", Reason: "Expired", Code: 410})), asProtobuf, pods, podOptions{})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)

	for _, body := range []string{
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[{"cells":[1]}]}`,
		`{"rows":[{"cells":[1]}],"kind":"Table","apiVersion":"meta.k8s.io/v1"}`,
		`{"kind":"TableList","apiVersion":"meta.k8s.io/v1","items":[]}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`,
		`{"kind":"Status","apiVersion":"v1","status":"Success"}`,
		`{}`,
	} {
		_, _, err := collect(podCodec, body, asJSON, pods, podOptions{})
		var kind *codec.KindError
		require.ErrorAs(t, err, &kind, body)
		require.ErrorIs(t, err, codec.ErrUnexpectedKind)
		require.Equal(t, pods, kind.Resource)
	}
	for _, kind := range []string{"Pod", "Table", ""} {
		_, _, err := collect(podCodec, string(sealedBytes("meta.k8s.io/v1", kind, nil)), asProtobuf, pods, podOptions{})
		require.ErrorIs(t, err, codec.ErrUnexpectedKind)
	}
}

var (
	deployments = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	desks       = api.Resource{Group: "furniture.io", Version: "v1", Kind: "Desk", Plural: "desks", Namespaced: true}
)

// A list of another kind hands out nothing, unless its kind comes behind its items.
func TestListOfAnotherKind(t *testing.T) {
	refused := func(err error, answered string) {
		t.Helper()
		require.ErrorIs(t, err, codec.ErrUnexpectedKind, answered)
		require.ErrorContains(t, err, `asked for pods (kind "Pod" of "v1") and was answered with kind `+answered)
	}
	for _, kind := range [][2]string{
		{"SecretList", "v1"},
		{"PodList", "metrics.k8s.io/v1beta1"},
		{"PodList", "v2"},
		{"PodsList", "v1"},
		{"PodListList", "v1"},
		{"List", "apps/v1"},
		{"PartialObjectMetadataList", "meta.k8s.io/v1"},
	} {
		answered := fmt.Sprintf("%q of %q", kind[0], kind[1])
		for _, item := range []string{`{"metadata":{"name":"a"}}`, ``} {
			items, _, err := collect(podCodec, fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"items":[%s]}`, kind[0], kind[1], item), asJSON, pods, podOptions{})
			refused(err, answered)
			require.Empty(t, items)
			_, _, err = collect(podCodec, fmt.Sprintf(`{"apiVersion":%q,"items":[%s],"kind":%q}`, kind[1], item, kind[0]), asJSON, pods, podOptions{})
			refused(err, answered)
		}
		_, _, err := collect(podCodec, fmt.Sprintf(`{"kind":%q,"apiVersion":%q}`, kind[0], kind[1]), asJSON, pods, podOptions{})
		refused(err, answered)
		for _, list := range []*corev1.PodList{{}, {Items: []corev1.Pod{*newPod(1)}}} {
			items, _, err := collect(podCodec, string(sealed(kind[1], kind[0], list)), asProtobuf, pods, podOptions{})
			refused(err, answered)
			require.Empty(t, items)
		}
	}
	metadata := api.Options[*metav1.PartialObjectMetadata]{}
	for _, kind := range []string{"SecretList", "TableList", "PartialObjectMetadata"} {
		body := fmt.Sprintf(`{"kind":%q,"apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"a"}}]}`, kind)
		_, _, err := collect(metadataCodec, body, asJSON, pods, metadata)
		refused(err, fmt.Sprintf("%q", kind))
	}
}

func TestListsThatServersSend(t *testing.T) {
	item := `{"metadata":{"name":"a"}}`
	for _, tc := range []struct {
		resource         api.Resource
		apiVersion, kind string
	}{
		{pods, "v1", "PodList"},
		{pods, "v1", "List"},
		{pods, "", "List"},
		{pods, "", "PodList"},
		{pods, "", ""},
		{pods, "v1", ""},
		{deployments, "apps/v1", "DeploymentList"},
		{deployments, "v1", "List"},
		{desks, "furniture.io/v1", "DeskList"},
		{pods, "meta.k8s.io/v1", "PartialObjectMetadataList"},
		{deployments, "meta.k8s.io/v1beta1", "PartialObjectMetadataList"},
	} {
		for _, format := range []string{`{"kind":%[1]q,"apiVersion":%[2]q,"items":[%[3]s]}`, `{"apiVersion":%[2]q,"items":[%[3]s],"kind":%[1]q}`} {
			body := fmt.Sprintf(format, tc.kind, tc.apiVersion, item)
			items, _, err := collect(metadataCodec, body, asJSON, tc.resource, api.Options[*metav1.PartialObjectMetadata]{})
			require.NoError(t, err, body)
			require.Equal(t, tc.resource.Kind, items[0].Kind)
		}
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	items, _, err := collect(metadataCodec, string(sealed("meta.k8s.io/v1", "PartialObjectMetadataList", list)), asProtobuf, pods, api.Options[*metav1.PartialObjectMetadata]{})
	require.NoError(t, err)
	require.Equal(t, "Pod", items[0].Kind)
}

// A custom resource may have any listKind, and each of its objects names its kind. Where they do not, or name another
// kind, the list has another kind.
func TestListOfAnotherKindInAGroupOfCustomResources(t *testing.T) {
	for item, accepted := range map[string]bool{
		``: true,
		`{"apiVersion":"furniture.io/v1","kind":"Desk","metadata":{"name":"a"}}`: true,
		`{"metadata":{"name":"a"}}`: false,
		`{"apiVersion":"furniture.io/v1","kind":"Chair","metadata":{"name":"a"}}`: false,
	} {
		for _, format := range []string{`{"kind":"Furniture","apiVersion":"furniture.io/v1","items":[%s]}`, `{"apiVersion":"furniture.io/v1","items":[%s],"kind":"Furniture"}`} {
			body := fmt.Sprintf(format, item)
			skip := func(*api.UndecodableError) error { return nil }
			_, _, err := collect(unstructuredCodec, body, asJSON, desks, unstructuredOptions{OnUndecodable: skip})
			if accepted {
				require.NoError(t, err, body)
			} else {
				require.ErrorContains(t, err, `was answered with kind "Furniture" of "furniture.io/v1"`, body)
			}
		}
	}
}

// A custom resource may use any name for its lists, also Table.
func TestListOfAnyKindName(t *testing.T) {
	for _, kind := range []string{"Collection", "TableList", ""} {
		body := fmt.Sprintf(`{"kind":%q,"apiVersion":"furniture.io/v1","items":[{"metadata":{"name":"a"}}]}`, kind)
		items, _, err := collect(unstructuredCodec, body, asJSON, api.Resource{}, unstructuredOptions{})
		require.NoError(t, err)
		require.Len(t, items, 1)
	}
}

func TestItemOfAnotherKindIsUndecodable(t *testing.T) {
	body := `{"kind":"List","apiVersion":"v1","items":[{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}]}`
	var reports []error
	items, _, err := collect(unstructuredCodec, body, asJSON, pods, unstructuredOptions{OnUndecodable: func(u *api.UndecodableError) error {
		reports = append(reports, u)
		return nil
	}})
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Len(t, reports, 1)
	require.ErrorIs(t, reports[0], codec.ErrUnexpectedKind)
}

func TestDropsManagedFields(t *testing.T) {
	want := newPod(1)
	want.ManagedFields = nil
	for _, media := range []string{asJSON, asProtobuf} {
		items, _, err := collect(podCodec, string(podList(3, media)), media, pods, podOptions{DropManagedFields: true})
		require.NoError(t, err)
		requireSame(t, want, items[1])
	}
	generic, _, err := collect(unstructuredCodec, string(podList(3, asJSON)), asJSON, pods, unstructuredOptions{DropManagedFields: true})
	require.NoError(t, err)
	require.NotContains(t, generic[1].Object["metadata"], "managedFields")
	require.Contains(t, generic[1].Object["metadata"], "ownerReferences")
}

// managedFields may be in any place, occur several times, and have anything around them.
func TestDropsManagedFieldsAnywhere(t *testing.T) {
	for _, metadata := range []string{
		`{"managedFields":[{"manager":"x"}]}`,
		`{ "managedFields" : [ ] , "name" : "a" }`,
		`{"name":"a" , "managedFields":[{"manager":"]}\"x"}] }`,
		`{"name":"a","managedFields":[1],"namespace":"b"}`,
		`{"managedFields":null,"name":"a","managedFields":[{}]}`,
		`{"m\u0061nagedFields":[{}],"name":"a"}`,
	} {
		body := `{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","metadata":` + metadata + `,"spec":{"nodeName":"n"}}]}`
		items, _, err := collect(unstructuredCodec, body, asJSON, api.Resource{}, unstructuredOptions{DropManagedFields: true})
		require.NoError(t, err, metadata)
		require.NotContains(t, items[0].Object["metadata"], "managedFields", metadata)
		require.Equal(t, map[string]any{"nodeName": "n"}, items[0].Object["spec"])
		if strings.Contains(metadata, `"a"`) {
			require.Equal(t, "a", items[0].GetName())
		}
	}
	body := `{"kind":"PodList","items":[{"metadata":{"managedFields":[{"manager":"x"}]},"metadata":{"name":"a"}}]}`
	typed, _, err := collect(podCodec, body, asJSON, api.Resource{}, podOptions{DropManagedFields: true})
	require.NoError(t, err)
	require.Empty(t, typed[0].ManagedFields)
}

// countless is a list without an end. Only its beginning is ever in memory.
type countless struct {
	head, item []byte
	at         int
	read       int
}

func (c *countless) Read(p []byte) (int, error) {
	n := 0
	if len(c.head) > 0 {
		n = copy(p, c.head)
		c.head = c.head[n:]
	}
	for n < len(p) {
		k := copy(p[n:], c.item[c.at:])
		c.at = (c.at + k) % len(c.item)
		n += k
	}
	c.read += n
	return n, nil
}

func TestListWithoutEndNeedsNoMemory(t *testing.T) {
	stop := errors.New("stop")
	for name, list := range map[string]struct {
		media string
		body  *countless
	}{
		"items":          {asJSON, &countless{head: []byte(`{"kind":"PodList","items":[{}`), item: []byte(`,{"metadata":{"name":"a","annotations":{"x":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}}}`)}},
		"skipped value":  {asJSON, &countless{head: []byte(`{"kind":"PodList","other":[1`), item: []byte(`,{"a":"\"b\\"}, 12345 , null`)}},
		"skipped string": {asJSON, &countless{head: []byte(`{"kind":"PodList","other":"`), item: []byte(`abc\n\u00e9`)}},
		"white space":    {asJSON, &countless{head: []byte(`{`), item: []byte(" \n")}},
	} {
		t.Run(name, func(t *testing.T) {
			body := &limited{r: list.body, left: 4 << 20, err: stop}
			c := codec.New[*metav1.PartialObjectMetadata](codec.Options{MaxObjectBytes: 64 << 10})
			allocated := allocatedBytes(func() {
				_, err := c.DecodeList(context.Background(), body, list.media, api.Resource{}, api.Options[*metav1.PartialObjectMetadata]{
					Known: func(_, _ []byte) (*metav1.PartialObjectMetadata, bool) { return nil, false },
				}, func(*metav1.PartialObjectMetadata) error {
					if list.body.read > 2<<20 {
						return stop
					}
					return nil
				})
				require.Error(t, err)
			})
			if name != "items" { // items become garbage as soon as they are handed out, but they still count
				require.Less(t, allocated, uint64(256<<10))
			}
		})
	}
}

// limited ends a stream with an error.
type limited struct {
	r    io.Reader
	left int
	err  error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.err
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
