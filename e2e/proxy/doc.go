// Package proxy forwards TCP connections and breaks them on demand. It works below TLS and HTTP, so it breaks
// connections as a network does.
//
// # Promises
//
//  1. Without a fault, all bytes and the end of each direction arrive in order.
//  2. Cut resets both ends of every open connection. The next connection works.
//  3. During a stall nothing arrives, on old and new connections. After Resume everything does.
//  4. After HalfClose the client reads the end, and its writes still arrive.
//  5. While the proxy refuses, it resets every new connection at once.
//  6. Run ends with its context, also during a stall, and closes every connection.
//
// # Concurrency
//
// All methods may be called on any goroutine. Only Run blocks.
package proxy
