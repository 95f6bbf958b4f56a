// Package sameorigin keeps web pages of other origins away from a server without a login. A Guard stands in front of
// the manager's admin server, and of the test server on a real listener. Every web page can send requests from the
// machine whose browser shows it, so it reaches servers on loopback, and servers behind a firewall.
//
// # Example
//
//	guard, err := sameorigin.New([]string{"leat.example"})
//	server := &http.Server{Handler: guard.Handler(listener.Addr(), next)}
//
// # Promises
//
//  1. A page cannot reach the server under a name of its own (DNS rebinding). A listener on loopback answers to
//     localhost and to loopback addresses, with its own port. Another listener answers to every IP address and to
//     localhost, and to other names if the request is not from a browser. Both answer to the allowed hosts.
//  2. A request that a browser sends for a page of another origin gets 403, whatever its method. So does the
//     handshake of a WebSocket.
//  3. A request from a browser with a body that a form could send gets 415.
//  4. A browser does not embed an answer in a page of another origin.
//  5. Programs get the same answers as without the guard: probes, Prometheus, curl, kubectl, and clients that set
//     Origin to the URL of the server.
//
// # The rule for hosts
//
// Rule: the first promise. Reason: if the name of a page resolves to this machine, the browser treats both as one
// origin, so only Host gives the page away. An IP address in Host is safe, because a page cannot change what it
// resolves to. On loopback, clients do not use other names. On other interfaces, probes use the address of a Pod, and
// Prometheus may use any name of a Service. Such a name looks like that of a web site, so the guard looks for signs
// of a browser. Browsers add Accept-Language to every request, and a script can change but not remove it.
//
// Price: a tunnel to a loopback listener from another port, and a browser that uses a name, need an allowed host. A
// link on another site to the server does not work; an address that a person types does. If a browser hides every
// sign of itself, a page in it can reach a listener that is not on loopback.
//
// # Concurrency
//
// A Guard does not change. Its handlers may be called on any goroutine.
//
// # Differences from client-go
//
// client-go and controller-runtime have nothing like it. CrossOriginProtection of net/http does not check GET, nor
// Host. Here the reads need protection, and the handshake of a WebSocket is a GET.
package sameorigin
