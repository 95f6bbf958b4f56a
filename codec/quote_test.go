package codec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	marker  = "MARKER"
	maxText = 1200 // bytes of an error: a message of a Status, and what it is about
)

// quoting is what many UnmarshalJSON methods are like.
type quoting struct{}

func (*quoting) UnmarshalJSON(b []byte) error { return fmt.Errorf("quoting: cannot read %s", b) }

// quotingText does so as the key of a map, too.
type quotingText string

func (*quotingText) UnmarshalText(b []byte) error { return fmt.Errorf("quoting: cannot read %s", b) }

// quotingMessage does so with a message of protobuf.
type quotingMessage struct {
	Metadata metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	secret   string
}

func (m *quotingMessage) Unmarshal(b []byte) error {
	m.secret = string(b)
	return errors.New("quoting: cannot read " + m.secret)
}

// holder has quotingMessage in a field.
type holder struct {
	Metadata metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Message  quotingMessage    `json:"message" protobuf:"bytes,2,opt,name=message"`
}

type quoted struct {
	odd     `json:",inline"`
	Quoting quoting                `json:"quoting"`
	Text    quotingText            `json:"text"`
	Texts   map[quotingText]string `json:"texts"`
	Deep    *quoted                `json:"deep"`
}

func requireBounded(t *testing.T, err error, of string) {
	t.Helper()
	require.Error(t, err, of)
	require.LessOrEqual(t, len(err.Error()), maxText, of)
	require.NotContains(t, err.Error(), marker, of)
	require.NotContains(t, err.Error(), "7777777", of)
	for ; err != nil; err = errors.Unwrap(err) {
		require.LessOrEqual(t, len(err.Error()), maxText, of)
	}
}

// marked are values, each with 64 KiB that no error may quote.
func marked() map[string]string {
	const n = 64 << 10
	text := strings.Repeat(marker, n/len(marker))
	digits := strings.Repeat("7", n)
	return map[string]string{
		"a string":                 `"` + text + `"`,
		"a string of digits":       `"` + digits + `"`,
		"a string of JSON":         `"{\"` + text + `"`,
		"a number":                 digits,
		"a fraction":               digits + ".5e99999",
		"a small fraction":         "0." + digits,
		"an object":                `{"a":"` + text + `"}`,
		"an object's key":          `{"` + text + `":[]}`,
		"an object's key and text": `{"1":"` + text + `"}`,
		"an array":                 `["` + text + `",{}]`,
		"an array of numbers":      `[` + digits + `]`,
		"an array of objects":      `[{"` + text + `":true}]`,
		"a time":                   `"2024-01-15T` + text + `"`,
	}
}

// TestErrorsQuoteNothingOfAnObject decodes huge values into fields of every type that reads JSON in a way of its own.
func TestErrorsQuoteNothingOfAnObject(t *testing.T) {
	c := codec.New[*quoted](codec.Options{})
	var fields []string
	for _, typ := range []reflect.Type{reflect.TypeFor[odd](), reflect.TypeFor[quoted]()} {
		for i := range typ.NumField() {
			if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "" {
				fields = append(fields, name)
			}
		}
	}
	depths := []string{`{%q:%s}`, `{"deep":{"deep":{%q:%s}}}`}
	if testing.Short() {
		depths = depths[1:]
	}
	failed := map[string]int{}
	for kind, value := range marked() {
		for _, field := range fields {
			for _, around := range depths {
				body := fmt.Sprintf(around, field, value)
				_, err := c.DecodeObject(context.Background(), strings.NewReader(body), asJSON, api.Resource{})
				if err != nil {
					requireBounded(t, err, kind+" in "+field)
					failed[field]++
				}
			}
		}
	}
	require.Greater(t, len(failed), 30, "nearly every field refuses something: %v", failed)
	for _, field := range []string{"quoting", "text", "texts", "time", "metaTime", "micro", "quantity", "addr", "big", "number", "quoted", "any"} {
		require.Positive(t, failed[field], field)
	}
}

func TestErrorsQuoteNothingHoweverAnObjectComes(t *testing.T) {
	huge := strings.Repeat(marker, 64<<10/len(marker))
	bad := `{"metadata":{"name":"x","creationTimestamp":"` + huge + `"}}`
	for name, body := range map[string]string{
		"a field":    bad,
		"a nameless": `{"metadata":{"creationTimestamp":"` + huge + `"}}`,
		"a label":    `{"metadata":{"name":"x","labels":{"` + huge + `":1}}}`,
		"a kind":     `{"kind":"` + huge[:60] + `","apiVersion":"v1","metadata":{"name":"x"}}`,
	} {
		ctx := context.Background()
		_, err := podCodec.DecodeObject(ctx, strings.NewReader(body), asJSON, pods)
		_, _, inList := collect(podCodec, `{"kind":"PodList","apiVersion":"v1","items":[`+body+`]}`, asJSON, pods, podOptions{})
		_, inWatch := events(t, podCodec, jsonFrame("ADDED", []byte(body)), asJSON, pods, podOptions{})
		for _, err := range []error{err, inList, inWatch} {
			if name == "a kind" { // which is quoted
				require.ErrorIs(t, err, codec.ErrUnexpectedKind)
				require.LessOrEqual(t, len(err.Error()), maxText)
				continue
			}
			requireBounded(t, err, name)
		}
	}
	// What says what an answer is, and not what it holds, is quoted up to a bound.
	for name, body := range map[string]string{
		"a huge name":       `{"metadata":{"name":"` + huge + `","namespace":"` + huge + `","creationTimestamp":1}}`,
		"a huge kind":       `{"kind":"` + huge + `","apiVersion":"` + huge + `"}`,
		"a huge status":     `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + huge + `","reason":"` + huge + `"}`,
		"a huge media type": "",
	} {
		media := asJSON
		if body == "" {
			media += ";" + huge
			media = "text/" + media
		}
		_, err := podCodec.DecodeObject(context.Background(), strings.NewReader(body), media, pods)
		require.Error(t, err, name)
		require.LessOrEqual(t, len(err.Error()), maxText, name)
	}
	_, err := events(t, podCodec, jsonFrame(huge, []byte(`{}`)), asJSON, pods, podOptions{})
	require.ErrorIs(t, err, codec.ErrUnknownEvent)
	require.LessOrEqual(t, len(err.Error()), maxText)
}

func TestUndecodableObjectsAreKeptShort(t *testing.T) {
	huge := strings.Repeat("n", 64<<10)
	item := `{"metadata":{"namespace":"` + huge + `","name":"` + huge + `","uid":"` + huge + `","resourceVersion":"` + huge + `","creationTimestamp":1}}`
	var reported *api.UndecodableError
	_, _, err := collect(podCodec, `{"kind":"PodList","apiVersion":"v1","items":[`+item+`]}`, asJSON, pods, podOptions{
		OnUndecodable: func(e *api.UndecodableError) error {
			reported = e
			return nil
		},
	})
	require.NoError(t, err)
	for _, kept := range []string{reported.Key.Namespace, reported.Key.Name, string(reported.UID), reported.ResourceVersion} {
		require.Len(t, kept, 256)
	}
	requireBounded(t, reported, "an item")
}

// TestErrorsQuoteNothingOfAMessage has errors in what protobuf types read by themselves.
func TestErrorsQuoteNothingOfAMessage(t *testing.T) {
	huge := strings.Repeat(marker, 64<<10/len(marker))
	field := func(number byte, content string) string {
		return string(append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content))), content...))
	}
	named := field(1, field(1, "x")) // metadata.name
	ctx := context.Background()
	check := func(err error, what string) {
		t.Helper()
		requireBounded(t, err, what)
	}
	_, err := codec.New[*holder](codec.Options{}).DecodeObject(ctx, bytes.NewReader(sealedBytes("v1", "Pod", []byte(named+field(2, huge)))), asProtobuf, pods)
	check(err, "a message in a field")
	_, err = codec.New[*quotingMessage](codec.Options{}).DecodeObject(ctx, bytes.NewReader(sealedBytes("v1", "Pod", []byte(named+field(2, huge)))), asProtobuf, pods)
	check(err, "a message that is the object")
	limits := field(1, field(1, "cpu")+field(2, field(1, huge)))
	container := field(2, field(8, limits)) // spec.containers[].resources.limits
	_, err = podCodec.DecodeObject(ctx, bytes.NewReader(sealedBytes("v1", "Pod", []byte(named+field(2, container)))), asProtobuf, pods)
	check(err, "a quantity")
	_, err = podCodec.DecodeObject(ctx, bytes.NewReader(sealedBytes("v1", "Pod", []byte(named+field(2, huge)))), asProtobuf, pods)
	check(err, "no message")
	_, err = codec.New[*appsv1.Deployment](codec.Options{}).DecodeObject(ctx, bytes.NewReader(sealedBytes(huge, huge, nil)), asProtobuf, pods)
	require.ErrorIs(t, err, codec.ErrUnexpectedKind)
	require.LessOrEqual(t, len(err.Error()), maxText)
}

// TestFailuresQuoteNoObjects has answers of errors that are no Status.
func TestFailuresQuoteNoObjects(t *testing.T) {
	huge := strings.Repeat(marker, 1<<20/len(marker))
	secret := `{"kind":"Secret","apiVersion":"v1","data":{"a":"` + marker + `"}}`
	failure := func(media, body string) error {
		return codec.Failure{Code: http.StatusInternalServerError, MediaType: media, Body: strings.NewReader(body)}.Error()
	}
	requireBounded(t, failure(asJSON, secret), "an object")
	requireBounded(t, failure(asJSON, secret[:40]+marker), "a part of one")
	requireBounded(t, failure("text/plain", "apiVersion: v1\nkind: Secret\ndata: "+marker), "one of YAML")
	for _, frame := range []string{secret, `"` + huge + `"`, `[]`} {
		_, err := events(t, podCodec, jsonFrame("ERROR", []byte(frame)), asJSON, pods, podOptions{})
		require.True(t, apierrors.IsInternalError(err), "%v", err)
		requireBounded(t, err, "an ERROR frame")
	}
	for _, err := range []error{
		failure("text/plain", huge),
		failure(asJSON, `{"kind":"Status","status":"Failure","message":"`+huge[:40<<10]+`"}`),
	} {
		require.LessOrEqual(t, len(err.Error()), maxText)
		require.Contains(t, err.Error(), marker, "which is the server's own word")
	}
	causes := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Failure", Details: &metav1.StatusDetails{}}
	for range 2000 {
		causes.Details.Causes = append(causes.Details.Causes, metav1.StatusCause{Message: "m", Field: "f"})
	}
	var status *apierrors.StatusError
	require.ErrorAs(t, failure(asJSON, string(mustJSON(causes))), &status)
	require.Len(t, status.ErrStatus.Details.Causes, 1024)
}

// FuzzErrorsQuoteNothing puts a marker anywhere in the spec of an object.
func FuzzErrorsQuoteNothing(f *testing.F) {
	f.Add([]byte(`{"containers":[{"name":"","resources":{"limits":{"cpu":""}},"ports":[{"hostPort":1}]}]}`), 16)
	f.Add([]byte(`{"deep":{"time":"","texts":{"":""},"quantity":1}}`), 17)
	f.Add([]byte(`"2024-01-01T00:00:00Z"`), 3)
	f.Add([]byte(`{"a":[1,2,{"b":7e999}]}`), 5)
	quotedCodec := codec.New[*struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     quoted            `json:"spec"`
	}](codec.Options{MaxObjectBytes: fuzzLimit})
	podCodec := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: fuzzLimit})
	genericCodec := codec.New[*unstructured.Unstructured](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, spec []byte, at int) {
		if at < 0 || at > len(spec) {
			return
		}
		spec = []byte(string(spec[:at]) + marker + string(spec[at:]))
		if !json.Valid(spec) { // it may be what says which kind it is
			return
		}
		body := `{"metadata":{"name":"x"},"spec":` + string(spec) + `}`
		for _, decode := range []func() error{
			func() error {
				return must.Err(quotedCodec.DecodeObject(context.Background(), strings.NewReader(body), asJSON, pods))
			},
			func() error {
				_, _, err := collect(podCodec, `{"kind":"PodList","items":[`+body+`]}`, asJSON, pods, podOptions{})
				return err
			},
			func() error {
				return must.Err(genericCodec.DecodeObject(context.Background(), strings.NewReader(body), asJSON, pods))
			},
		} {
			if err := decode(); err != nil {
				require.NotContains(t, err.Error(), marker)
				require.LessOrEqual(t, len(err.Error()), maxText)
			}
		}
	})
}
