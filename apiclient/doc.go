// Package apiclient is the client of a Kubernetes API server: its verbs, its lists and its watches, typed by what the
// caller keeps of an object.
//
// # Place in the pipeline
//
// First of all stages: it turns the bytes of a connection into objects and events. It stands on codec and api;
// reflector and informer stand on it through api.ListerWatcher, which NewTyped and NewPartial return. What not every
// agent needs is in packages below it, linked only by who calls them: kubeconfig, exec, discovery, websocket.
//
// # Guarantees
//
//  1. A list and a watch is exactly one request: who repeats those is the reflector. Any other call is sent again only
//     where the server asks for it, or the connection is lost, and where it is certain that nothing is done twice; how
//     often and for how long is bounded, and the error says how often it was sent (TestWhatIsRepeated,
//     TestWaits, TestRepetitionHasBounds, TestVerbsOnTheWire). Whatever was refused for its
//     credentials is sent once more with others (TestRefusedCredentialsAndBusyServers). (net/http itself sends a read anew
//     when the idle connection that it took turns out to be closed.)
//  2. Lists are handed out item by item as bytes arrive, watches event by event, compressed or not; no body is ever held
//     whole (TestSuite, TestCompressedWatchesAreNotLate).
//  3. A partial T is never written back whole: a PartialClient has no Create, Update or UpdateStatus
//     (TestAPartialClientHasNoWholeObjectWrites).
//  4. What a server answers instead of success is a *apierrors.StatusError, whoever wrote it and however it was cut, with
//     the delay that it asks for; what is no answer at all, or one that cannot be read, is a typed error too, and the next
//     call works as if nothing had been (TestOddAnswers, FuzzStatusErrors).
//  5. An error is wrapped once with the operation, and errors.Is and errors.As reach what is beneath (TestOddAnswers,
//     TestRefusedConnectionsAreRecognised). Its text has about a kilobyte at most, whatever a server or a proxy says, and
//     quotes nothing of an object (TestErrorsAreShort, TestDocumentsAreNotQuoted).
//  6. A context that ends, ends its call at once and with the context's error, in every state, and leaves nothing behind
//     (TestCancellationEndsEveryState, TestCancellationWhileDialling, TestAContextEndsEachWait,
//     TestAnAnswerThatSwitchesProtocolsEnds).
//  7. Leaving the loop of a watch closes its stream (TestBreakClosesTheStream).
//  8. Nothing cuts a long answer: only the wait for the head of a read is bounded
//     (TestNothingCutsALongAnswer, TestTheWaitForAHeadIsBounded), and a watch ends when the server no longer
//     keeps what it promised: its time-out, its bookmarks (TestAWatchThatBreaksItsPromiseEnds, TestASlowCallerIsNotSilence).
//  9. A connection of HTTP/2 that is dead ends its watches after 45 seconds, also where the kernel takes it for alive, and
//     is not used again (TestADeadConnectionEndsItsWatches, TestAHalfOpenConnectionEndsItsWatches); what does not begin
//     ends too (TestAServerThatAcceptsAndSaysNothing). More watches than a connection has streams get more connections
//     (TestMoreWatchesThanAConnectionHasStreams).
//  10. No credential is printed, logged, marshalled or quoted in an error, not even one that the server echoes
//     or a proxy, or net/http quotes, whole or cut short (TestNoCredentialIsPrinted, TestNoCredentialIsLogged,
//     TestACertificateIsMarshalledWithoutItsKey, TestAServerThatEchoesCredentials, TestHalfATokenIsNotQuoted,
//     TestAProxyThatEchoesCredentials, TestEveryTokenThatWasSentIsHidden,
//     TestAnAnswerThatCannotBeReadIsNotQuotedWithCredentials).
//  11. No credential follows a redirect to another host or scheme; a write follows none (TestRedirects).
//  12. Certificates are verified, with TLS 1.2 at least, and one that is not accepted is named with the reason
//     (TestTLSIsVerifiedUnlessInsecure, TestOldTLSIsRefused, TestCertificateErrorsSayWhichAndWhy,
//     TestAClientCertificateOutOfDateIsNamed).
//  13. A wrong configuration is one error that names the field (TestNewNamesTheInvalidField).
//  14. A token, a client certificate and an authority that rotate, in files or in a CredentialSource, are what the next
//     request uses, five seconds after a file was replaced at the latest, and at once after a 401; a watch in flight goes
//     on over its connection, which is closed after it (TestTokenFilesAreReadAgain, TestASourceOfCredentials,
//     TestARotatedClientCertificateTakesOverWithoutDroppingAWatch, TestARotatedAuthorityIsTrusted,
//     TestAnAuthorityThatIsNoLongerNamedIsNotTrusted, TestTwoVersionsThatLookAlike). A file that is missing, empty or half
//     written changes nothing, and an error that it may be the reason of says so (TestFilesThatAreBeingReplacedChangeNothing).
//  15. An answer costs no more memory than MaxObjectBytes allows, and more than that is a *codec.TooLargeError
//     (TestAnswersWithoutEndAreRefused, TestAListWithoutEndNeedsNoMemory, TestTheLimitIsTheCallers).
//  16. Each sending of a request is observed once, when it has ended; nobody to tell costs nothing
//     (TestRequestsAreObserved, TestEachAttemptIsObserved, TestWatchesAreObservedAtTheirEnd, TestNoHookCostsNothing).
//  17. A warning is handed on once, and fit to be shown (TestWarnings, TestOldWarningsAreForgotten).
//  18. Proxies of HTTP, HTTPS and SOCKS5 are used as configured or as the environment says. One that does not connect is
//     named, with its answer; an HTTPS proxy is verified by its own name and sees no client certificate
//     (TestProxiesOfEveryKind, TestTheEnvironmentsProxies, TestAnswersOfProxiesAreNamed,
//     TestAProxysCertificateIsVerified).
//  19. A limiter holds back all but watches, and is named when it lets nothing through
//     (TestTheLimiterDelaysAllExceptWatches, TestALimiterThatRefusesIsNamed).
//  20. All yields objects as their bytes arrive, none twice, all of one state, and asks for nothing ahead (TestPagesAreOneList,
//     TestNoPageIsHeld, TestATokenThatExpires, TestABreakEndsTheList). It and RetryOnConflict, which tries conflicts about
//     versions again and none about the ownership of fields, are what repeats beside guarantee 1 (TestRetryOnConflict).
//  21. A stream of bytes, such as a log, ends with its context or Close and frees its connection (TestPodLogs,
//     TestCloseEndsAStream, TestCompressedStreamsAreNotLate).
//  22. Dry runs, field managers and field validation reach every subresource (TestSubresourceOptionsOnTheWire).
//
// # Concurrency
//
// Client, TypedClient, PartialClient and Endpoint are safe for concurrent use and hold no lock while they wait. Every
// call blocks until it has its answer; List calls its function, and Watch its loop's body, on the caller's goroutine.
// No goroutine belongs to this package; those of net/http end with the request or, for idle connections, after 90
// seconds or with CloseIdleConnections, which is also all that there is to do with a client that is no longer needed. A
// request may read the files of its Config, with a lock held. Hooks are called with no lock held and may call the
// client (TestAWarningMayCallTheClient).
//
// # Differences from client-go
//
// There is no limit on the rate of requests by default, as there is no overall time-out. Retry-After is understood as a
// date too, its waits are spread, and a write is not repeated after a 5xx that may have come too late. A watch that is
// silent for longer than its server promised is ended. A hook is told of each request, instead of a dozen global ones.
// Errors name the operation. The answer is decoded while it arrives. A server's certificate is named in the error. A
// redirect never carries credentials to another host. Rotation needs no goroutine and closes no connection in use: a
// client certificate that changed closes all of client-go's. An HTTPS proxy is not shown the client certificate, nor
// asked for the server's name. Watches of gzip members are not one event late. A caller names an object by its key
// everywhere, and a key's namespace must agree with the client's.
//
// # Example
//
// See Example, ExampleRequest, ExampleNewPartial and ExamplePartialClient_Apply in example_test.go.
package apiclient
