package wireplan

import (
	"reflect"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type secretive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	seen              int
}

func (s *secretive) Unmarshal(b []byte) error {
	s.seen = len(b)
	return nil
}

// TestTypesThatMayDecodeThemselves compiles types before anybody says how types decode themselves. A type is read by
// numbers only if its Unmarshal could do nothing else.
func TestTypesThatMayDecodeThemselves(t *testing.T) {
	require.Nil(t, own, "the other tests of this package need no type that decodes itself")
	type common struct {
		metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	}
	type within[T any] struct {
		common
		Of T `json:"of" protobuf:"bytes,2,opt,name=of"`
	}
	type embedding[T any] struct {
		metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
		Of                struct{ Of T } `json:"of" protobuf:"bytes,2,opt,name=of"`
	}
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[corev1.Pod]():                         true,
		reflect.TypeFor[coordinationv1.Lease]():               true,
		reflect.TypeFor[metav1.PartialObjectMetadata]():       true,
		reflect.TypeFor[within[corev1.PodSpec]]():             true,
		reflect.TypeFor[within[*metav1.MicroTime]]():          true,
		reflect.TypeFor[authenticationv1.TokenReview]():       false,
		reflect.TypeFor[secretive]():                          false,
		reflect.TypeFor[within[secretive]]():                  false,
		reflect.TypeFor[within[[]*secretive]]():               false,
		reflect.TypeFor[within[map[string]secretive]]():       false,
		reflect.TypeFor[embedding[metav1.MicroTime]]():        false,
		reflect.TypeFor[within[struct{ metav1.MicroTime }]](): false,
		reflect.TypeFor[within[struct{ common }]]():           true,
		reflect.TypeFor[within[struct{ seen int }]]():         true,
	} {
		require.Equal(t, want, Compile(typ) != nil, typ)
	}
}

// TestMessage decodes messages of apimachinery.
func TestMessage(t *testing.T) {
	left := int64(7)
	for _, message := range []interface{ Marshal() ([]byte, error) }{
		&metav1.ListMeta{ResourceVersion: "7", Continue: "next", RemainingItemCount: &left},
		&metav1.Status{
			ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Status: "Failure", Message: "no", Code: 404,
			Details: &metav1.StatusDetails{Name: "a", UID: "u", Causes: []metav1.StatusCause{{Type: "t", Field: "f"}}, RetryAfterSeconds: 3},
		},
	} {
		b := must.Get(message.Marshal())(t)
		var m Message
		for range 2 {
			got := reflect.New(reflect.TypeOf(message).Elem()).Interface()
			require.NoError(t, m.Unmarshal(got, b))
			require.Equal(t, message, got)
		}
		require.Error(t, m.Unmarshal(message, b[:len(b)-1]))
	}
}
