package api

// Selector restricts a collection. The zero value selects everything.
type Selector struct {
	Labels string // as in kubectl: "app=web,tier in (front, back)"
	Fields string // as in kubectl: "spec.nodeName=n1". A server supports few fields of a resource.
}
