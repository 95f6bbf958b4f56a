package codec

import "github.com/leatproject/leat/codec/internal/wireplan"

// unmarshaler is the method with which a type decodes itself from protobuf.
type unmarshaler interface{ Unmarshal(b []byte) error }

// LetTypesUnmarshal lets types decode themselves from protobuf, with a method Unmarshal(b []byte) error that does
// something that the protobuf tags of their fields do not say. Without this call, objects with such a type are read as
// JSON. Of k8s.io/api, these are reviews of tokens and accesses, and CertificateSigningRequests. A struct with methods
// and hidden fields counts as such a type.
//
// Call it before the first Codec is made, such as in the init of a package. It is not the default, because each program
// would link the Unmarshal methods of all its types.
func LetTypesUnmarshal() {
	wireplan.LetTypesDecode(wireplan.Own{
		Has:       wireplan.Owns[unmarshaler],
		Unmarshal: func(pointer any, b []byte) error { return pointer.(unmarshaler).Unmarshal(b) },
	})
}
