package apiclient

// Warning is a message of the server in the head of an answer: an API is deprecated, a field is unknown or has no
// effect. It corresponds to the arguments of rest.WarningHandler of client-go.
type Warning struct {
	Code  int    // 299 from kube-apiserver: a persistent warning of no special kind
	Agent string // the sender; "-" for the server itself
	Text  string // one line of at most 1,024 bytes
}
