package codec_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type (
	embedded struct {
		A string `json:"a"`
		B int    `json:"b"`
	}
	hidden struct {
		C string `json:"c"`
	}
	upper string
	odd   struct {
		embedded
		*hidden  `json:",inline"`
		Inline   embedded  `json:",inline"`
		Named    *embedded `json:"named,omitempty"`
		Untagged string
		//lint:ignore SA5008 encoding/json takes it for a name
		Dash      string               `json:"-,"`
		Ignored   string               `json:"-"`
		Quoted    int64                `json:"quoted,string"`
		QuotedP   *bool                `json:"quotedP,omitempty,string"`
		QuotedS   string               `json:"quotedS,string"`
		Any       any                  `json:"any"`
		AnyMap    map[string]any       `json:"anyMap"`
		AnySlice  []any                `json:"anySlice"`
		Raw       json.RawMessage      `json:"raw"`
		Number    json.Number          `json:"number"`
		Bytes     []byte               `json:"bytes"`
		Array     [2]int               `json:"array"`
		ByteArray [3]byte              `json:"byteArray"`
		Ints      map[int]string       `json:"ints"`
		Uppers    map[upper][]upper    `json:"uppers"`
		Pointers  **int                `json:"pointers"`
		Duration  time.Duration        `json:"duration"`
		Time      time.Time            `json:"time"`
		Addr      netip.Addr           `json:"addr"`
		Big       big.Int              `json:"big"`
		Float32   float32              `json:"float32"`
		Int8      int8                 `json:"int8"`
		Uint      uint                 `json:"uint"`
		MetaTime  *metav1.Time         `json:"metaTime"`
		Micro     metav1.MicroTime     `json:"micro"`
		MetaDur   metav1.Duration      `json:"metaDur"`
		Port      intstr.IntOrString   `json:"port"`
		Quantity  resource.Quantity    `json:"quantity"`
		Extension runtime.RawExtension `json:"extension"`
		Fields    *metav1.FieldsV1     `json:"fields"`
		Verbs     metav1.Verbs         `json:"verbs"`
		Structs   map[string]embedded  `json:"structs"`
		StructPs  map[string]*embedded `json:"structPs"`
		Slice     []embedded           `json:"slice"`
	}
	shadowing struct {
		embedded
		A int `json:"a"`
	}
	tagWins struct {
		First  string `json:"Second"`
		Second int
	}
	left       struct{ embedded }
	right      struct{ embedded }
	bothOrNone struct {
		left
		right
	}
)

// A user's struct may contain everything that encoding/json accepts. The result is compared with sigs.k8s.io/json.
func TestStructsLikeReference(t *testing.T) {
	values := []string{
		`null`, `0`, `1`, `-7`, `1.5`, `1e2`, `300`, `99999999999999999999`, `true`, `""`, `"x"`, `"12"`, `"true"`, `"null"`, `"\"q\""`, `" 1"`,
		`"MTIz"`, `"MTIz\n"`, `"!!"`, `"2024-01-02T03:04:05Z"`, `"2024-01-02T03:04:05.123456Z"`, `"2024-01-02"`, `"1h30m"`, `"50%"`, `"100m"`, `"10.0.0.1"`,
		`[]`, `[1]`, `[1,2,3]`, `[null]`, `["a",null]`, `[{"a":"x","b":1}]`, `{}`, `{"a":"x","b":2}`, `{"1":"x"}`, `{"x":null}`, `{"x":{"a":"y"}}`, `{"x":["y"]}`,
		`{"x":1,"x":2}`, `{"a":1}`, `{"big":9007199254740993,"f":1.0,"n":[1,{"m":2}]}`, `"\ud800"`, "\"\xff\"",
	}
	typ := reflect.TypeFor[odd]()
	names := []string{"a", "A", "b", "c", "C", "Inline", "inline", "Untagged", "untagged", "-", "Ignored", "ignored"}
	for i := range typ.NumField() {
		if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	twice := values[:len(values)/4]
	if testing.Short() {
		twice = nil
	}
	for _, name := range names {
		for _, first := range values {
			sameAsReference(t, []byte(`{"`+name+`":`+first+`}`), typ)
			for _, second := range twice {
				sameAsReference(t, []byte(`{"`+name+`":`+first+`,"`+name+`":`+second+`}`), typ)
			}
		}
	}
	field := func(name, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"` + tag + `"`)}
	}
	conflicting := reflect.StructOf([]reflect.StructField{field("X", "same"), field("Y", "same"), field("Z", "z")})
	for _, other := range []reflect.Type{conflicting, reflect.TypeFor[shadowing]()} {
		for _, value := range values {
			sameAsReference(t, []byte(`{"same":`+value+`,"z":"1","a":`+value+`,"b":3}`), other)
		}
	}
}

// Among fields of one name, the outermost wins, then the one with a tag; several equal ones are ignored.
func TestFieldsOfOneName(t *testing.T) {
	for _, document := range []string{`{"Second":"x"}`, `{"Second":1}`, `{"First":"x"}`} {
		sameAsReference(t, []byte(document), reflect.TypeFor[tagWins]())
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[bothOrNone](), reflect.TypeFor[left](), reflect.TypeFor[shadowing]()} {
		sameAsReference(t, []byte(`{"a":"x","b":1}`), typ)
		sameAsReference(t, []byte(`{"a":1,"b":"x"}`), typ)
	}
}

// If a name is repeated, the earlier value shows through as in sigs.k8s.io/json: in the elements of a slice, whatever
// its length in between, but not in those of an array.
func TestRepeatedNamesShowThrough(t *testing.T) {
	for _, document := range []string{
		`{"slice":[{"a":"x"},{"a":"y","b":5}],"slice":[{}],"slice":[{},{},{}]}`,
		`{"slice":[{"a":"x"},{"a":"y","b":5}],"slice":[{}],"slice":[{},{}]}`,
		`{"slice":[{"a":"x"}],"slice":[],"slice":[{}]}`,
		`{"slice":[{"a":"x"}],"slice":null,"slice":[{}]}`,
		`{"array":[1,2],"array":[3]}`,
		`{"array":[1,2],"array":[]}`,
		`{"array":[1,2],"array":null}`,
		`{"named":{"a":"x"},"named":{"b":1}}`,
		`{"structs":{"k":{"a":"x"}},"structs":{"k":{"b":1},"l":{"a":"y"}}}`,
		`{"structs":{"k":{"a":"x"},"l":{}}}`,
		`{"structPs":{"k":{"a":"x"},"l":{"b":2},"m":null}}`,
		`{"uppers":{"k":["a","b"],"l":["c"]},"uppers":{"k":["d"]}}`,
		`{"ints":{"1":"a","2":null,"3":"b"}}`,
		`{"port":"x","port":7}`,
		`{"quantity":"1","quantity":null}`,
		`{"metaTime":"2024-01-02T03:04:05Z","metaTime":null}`,
		`{"micro":"2024-01-02T03:04:05.123456Z","micro":null}`,
		`{"a":"\ud83d\ude00\ud83d\u0041\ude00\ud83d"}`, `{"a":"\ud83d\\u0041"}`, `{"a":"\ude00\ude00"}`, `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\b\f\n\r\t\/\\\""}`,
		"{\"a\":\"0123456\xff\"}", "{\"a\":\"\xe2\x28\xa1 and more than eight\"}", `{"a":"é"}`, "{\"a\":\"x\xffy\",\"\\u0062\":7}",
	} {
		sameAsReference(t, []byte(document), reflect.TypeFor[odd]())
	}
}
